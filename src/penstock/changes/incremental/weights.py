"""Changes as rows with weights: +1 for each new image, −1 for each old one, summed per whole row.

What comes and goes within a window cancels out, whatever the order, and what remains is the net change.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from penstock.changes.version_range import Segment, Span
from penstock.errors import from_spark
from penstock.spark.internals.delta_log import delta_log
from penstock.spark.internals.jvm import DELTA, option, scala_object
from penstock.spark.schema import type_text
from penstock.sql.quoting import quote

if TYPE_CHECKING:
    from penstock.spark.backend import Backend, DataFrame, DataFrameReader, SparkSession

WEIGHT = "penstock_weight"
FILE, INDEX = "penstock_file", "penstock_index"
_FLOATING = ("float", "double")
_HAS_FLOATING = re.compile(r"\b(float|double)\b")
_OLD = ("delete", "update_preimage")
# What JSON would leave out or cut off are changes too.
_JSON = (
    "map('ignoreNullFields', 'false', 'timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\", "
    "'timestampNTZFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\")"
)


def identity(column: str, type: str) -> str:
    """An expression that can be grouped and compared, and differs wherever the value does."""
    shown = _comparable(column, type)
    if type.lower() in _FLOATING:
        return f"struct({shown}, {_is_negative_zero(column)})"
    if shown.startswith("to_json(") or not _HAS_FLOATING.search(type.lower()):
        return shown
    # As texts, the two zeros differ inside of a value as well.
    return f"struct({shown}, cast({column} as string))"


def _is_negative_zero(column: str) -> str:
    """Spark compares, groups and joins 0.0 and -0.0 as one value, and shows them as two."""
    return f"({column} = 0 and cast({column} as string) like '-%')"


def _comparable(column: str, type: str) -> str:
    """An expression that can be grouped and compared, and differs wherever the value does, but for the sign of a zero."""
    kind = type.lower()
    if kind.startswith("map<") and kind.count("map<") == 1 and "variant" not in kind:
        return f"map_entries({column})"
    if kind == "variant":
        # JSON has one null, and one kind of number and of text.
        return f"struct({column} is null, schema_of_variant({column}), to_json(struct({column} as v), {_JSON}))"
    if "map<" in kind or "variant" in kind:
        return f"to_json(struct({column} as v), {_JSON})"
    if "collate" in kind:
        # Other letters that count as equal are other values.
        return f"cast({column} as binary)" if kind.startswith("string") else f"to_json(struct({column} as v), {_JSON})"
    return column


def net(signed: str, columns: Sequence[tuple[str, str]]) -> str:
    """The rows of a relation with its weights summed per whole row; those that cancel out are gone."""
    by, shown = [], []
    for name, type in columns:
        column = quote(name)
        if type.lower() in _FLOATING:
            # Grouping makes 0.0 of both zeros, and needs no buffer for the value then.
            negative = _is_negative_zero(column)
            by += [column, negative]
            shown.append(f"if({negative}, -{column}, {column}) as {column}")
        else:
            by.append(identity(column, type))
            shown.append(column if by[-1] == column else f"any_value({column}) as {column}")
    weight = f"sum({WEIGHT})"
    return (
        f"select {', '.join([*shown, f'{weight} as {WEIGHT}'])} from {signed} group by {', '.join(by)} "
        f"having {weight} <> 0"
    )


class Views:
    """Versions and changes of tables as temporary views of one session, dropped together."""

    def __init__(self, runner: Backend) -> None:
        self._runner = runner
        self._views: dict[object, str] = {}
        self._kept: list[DataFrame] = []

    def __enter__(self) -> Views:
        return self

    def __exit__(self, *_: object) -> None:
        for view in self._views.values():
            self._runner.drop_view(view)
        for frame in self._kept:
            frame.unpersist()

    def at(self, location: str, version: int) -> str:
        """A table at a version."""
        return self._view((location, version), lambda: self._snapshot(location, version))

    def placed(self, rows: DataFrame, columns: Sequence[str]) -> str:
        """Some columns of a table's rows, and where each row is."""
        place = [f"_metadata.file_path as {FILE}", f"_metadata.row_index as {INDEX}"]
        return self._view(object(), lambda: rows.selectExpr(*(quote(column) for column in columns), *place))

    def nothing(self, location: str, version: int) -> str:
        """Its columns without a row."""
        return self._view((location, version, "nothing"), lambda: self._snapshot(location, version).where("false"))

    def changed(self, span: Span, segments: Sequence[Segment], sign: int | None) -> str:
        """The net new rows (1), the net old rows (−1), or both (None), each as often as it comes or goes."""

        def frame() -> DataFrame:
            net_rows = self._spark.table(self._net_kept(span, segments))
            if sign is None:
                return net_rows.drop(WEIGHT)
            often = f"explode(sequence(1, abs({WEIGHT})))"
            signed = net_rows.where(f"{WEIGHT} * {sign} > 0")
            return signed.selectExpr("*", f"{often} as penstock_copy").drop(WEIGHT, "penstock_copy")

        return self._view((span, sign), frame)

    def net(self, span: Span, segments: Sequence[Segment]) -> str:
        """The rows that have come or gone, with their weights."""

        def frame() -> DataFrame:
            columns = [(field.name, type_text(field.dataType)) for field in self._snapshot_of(span).schema.fields]
            parts = [self._images(span, segment, columns) for segment in segments]
            signed = self._view((span, "signed"), lambda: reduce(lambda left, right: left.union(right), parts))
            return self.frame(net(signed, columns))

        return self._view((span, "net"), frame)

    def of(self, query: str) -> str:
        """Any query, by a name of its own."""
        return self._view(object(), lambda: self.frame(query))

    def kept(self, query: str) -> str:
        """The same, computed once however often it is read."""
        return self._view(object(), lambda: self._keep(self.frame(query)))

    def first(self, query: str) -> Sequence[Any] | None:
        """The first row of a query."""
        frame = self.frame(query)
        try:
            return frame.first()
        except Exception as error:
            raise from_spark(error, query) from error

    def _net_kept(self, span: Span, segments: Sequence[Segment]) -> str:
        return self._view((span, "kept"), lambda: self._keep(self._spark.table(self.net(span, segments))))

    def _images(self, span: Span, segment: Segment, columns: Sequence[tuple[str, str]]) -> DataFrame:
        if segment.by_snapshot:
            old, new = (self._snapshot(span.location, version) for version in (segment.first - 1, segment.last))
            return _aligned(old, columns, "-1").union(_aligned(new, columns, "1"))
        feed = self._feed(span.location, segment)
        kinds = ", ".join(f"'{kind}'" for kind in _OLD)
        return _aligned(feed, columns, f"if(_change_type in ({kinds}), -1, 1)")

    def _feed(self, location: str, segment: Segment) -> DataFrame:
        """A segment's images, with the columns that the table had at its end.

        By Delta's reader they have those of today, and none can be read where one of them is of another type since.
        """
        spark: Any = self._spark
        none, reader = option(spark), scala_object(spark, f"{DELTA}.commands.cdc.CDCReader")
        try:
            log = delta_log(spark, self._runner.place(location))
            then = option(spark, log.getSnapshotAt(segment.last, none, none, False))
            with self._runner.active():
                images = reader.changesToBatchDF(
                    log, segment.first, segment.last, spark._jsparkSession, none, then, False, none
                )
        except Exception as error:
            raise from_spark(error) from error
        return self._runner.frame(images)

    def _snapshot_of(self, span: Span) -> DataFrame:
        return self._spark.table(self.at(span.location, span.end))

    def _snapshot(self, location: str, version: int) -> DataFrame:
        return self._load(self._spark.read.format("delta").option("versionAsOf", str(version)), location)

    def _load(self, reader: DataFrameReader, location: str) -> DataFrame:
        try:
            return reader.load(self._runner.place(location))
        except Exception as error:
            raise from_spark(error) from error

    def frame(self, query: str) -> DataFrame:
        frame = self._runner.run(query).frame
        assert frame is not None
        return frame

    def _keep(self, frame: DataFrame) -> DataFrame:
        try:
            self._kept.append(frame.persist())
        except Exception as error:
            raise from_spark(error) from error
        return self._kept[-1]

    @property
    def _spark(self) -> SparkSession:
        return self._runner.spark

    def _view(self, what: object, frame: Callable[[], DataFrame]) -> str:
        if what not in self._views:
            name = f"penstock_{uuid.uuid4().hex}"
            frame().createOrReplaceTempView(name)
            self._views[what] = name
        return self._views[what]


def _aligned(frame: DataFrame, columns: Sequence[tuple[str, str]], weight: str) -> DataFrame:
    """A frame's rows with these columns, by name: cast where the type was another, null where there was none."""
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
