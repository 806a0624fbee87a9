"""The row changes of tables as temporary views: net rows that came or went between two versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from penstock.spark.internals.row_images import row_images
from penstock.spark.query_columns import type_text
from penstock.spark.views import TemporaryViews
from penstock.spark.weights import WEIGHT, net
from penstock.sql.quoting import quote

if TYPE_CHECKING:
    from penstock.spark.backend import DataFrame

_OLD = ("delete", "update_preimage")


@dataclass(frozen=True)
class Segment:
    """Versions that are read together: from the change data feed, or as the difference of two snapshots."""

    first: int
    last: int
    by_snapshot: bool = False
    """Whether the feed cannot be read here, because a commit changes rows and column types at once."""


@dataclass(frozen=True)
class TableChanges:
    """Which row changes of a table are read."""

    location: str
    version: int
    """The last version. The changes have the columns of this version."""
    segments: tuple[Segment, ...]


class ChangeFeed:
    """Reads row changes into temporary views."""

    def __init__(self, views: TemporaryViews) -> None:
        self._views = views

    def rows(self, changes: TableChanges, sign: int | None) -> str:
        """The net new rows (1), the net old rows (-1), or both (None); each as often as it came or went."""

        def frame() -> DataFrame:
            net_rows = self._views.table(self._cached_net(changes))
            if sign is None:
                return net_rows.drop(WEIGHT)
            often = f"explode(sequence(1, abs({WEIGHT})))"
            signed = net_rows.where(f"{WEIGHT} * {sign} > 0")
            return signed.selectExpr("*", f"{often} as penstock_copy").drop(WEIGHT, "penstock_copy")

        return self._views.named((changes, sign), frame)

    def net(self, changes: TableChanges) -> str:
        """The rows that came or went, with their weights."""

        def frame() -> DataFrame:
            now = self._views.table(self._views.at(changes.location, changes.version))
            columns = [(field.name, type_text(field.dataType)) for field in now.schema.fields]
            parts = [self._images(changes.location, segment, columns) for segment in changes.segments]
            signed = self._views.named(
                (changes, "signed"), lambda: reduce(lambda left, right: left.union(right), parts)
            )
            return self._views.frame(net(signed, columns))

        return self._views.named((changes, "net"), frame)

    def _cached_net(self, changes: TableChanges) -> str:
        return self._views.named((changes, "cached"), lambda: self._views.cache(self._views.table(self.net(changes))))

    def _images(self, location: str, segment: Segment, columns: Sequence[tuple[str, str]]) -> DataFrame:
        if segment.by_snapshot:
            versions = (segment.first - 1, segment.last)
            old, new = (self._views.snapshot(location, version) for version in versions)
            return _aligned(old, columns, "-1").union(_aligned(new, columns, "1"))
        runner = self._views.runner
        feed = row_images(runner.spark, runner.spark_location(location), segment.first, segment.last)
        kinds = ", ".join(f"'{kind}'" for kind in _OLD)
        return _aligned(feed, columns, f"if(_change_type in ({kinds}), -1, 1)")


def _aligned(frame: DataFrame, columns: Sequence[tuple[str, str]], weight: str) -> DataFrame:
    """A DataFrame's rows with these columns, by name: cast if the type was another, null if there was no such column."""
    have = {field.name.lower(): field for field in frame.schema.fields}
    shown = []
    for name, type in columns:
        found = have.get(name.lower())
        if found is None:
            shown.append(f"cast(null as {type}) as {quote(name)}")
        elif type_text(found.dataType) == type:
            shown.append(f"{quote(found.name)} as {quote(name)}")
        else:
            shown.append(f"cast({quote(found.name)} as {type}) as {quote(name)}")
    return frame.selectExpr(*shown, f"{weight} as {WEIGHT}")
