"""The plan of one commit: which versions of each source come in, and how."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field, replace

from penstock.changes.version_range import VersionRange
from penstock.protocol.plan import Parsing, check_header, header_of

KIND = "changes"


@dataclass(frozen=True)
class ChangePlan:
    """One commit of a model that follows changes."""

    number: int
    generation: int
    ranges: tuple[VersionRange, ...]
    replace: bool = False
    """Whether it creates the table, or replaces it."""
    rows: bool = True
    """Whether any row of a source changes in it."""
    columns: bool = False
    """Whether the model may have other columns than the table, although no row changes."""
    whole: str = ""
    """Why the model is computed as a whole and compared with the table; empty if it is not."""
    model: str = ""
    """A digest of the model's SQL."""
    built: str = ""
    """A digest of the SQL that produced the rows this plan leaves unchanged."""
    key: tuple[str, ...] = ()
    """The key's columns."""
    ledger: str | None = None
    """The life of the table that it belongs to, or begins."""
    time: int = field(default_factory=lambda: int(time.time() * 1000))

    @property
    def is_empty(self) -> bool:
        """Whether its commit only records that the versions are in: neither rows nor columns change."""
        return not self.rows and not self.columns

    def position(self, *, void: bool) -> dict[str, VersionRange]:
        """How far each source is in after this plan; or before it, if the plan was cancelled."""
        return {
            versions.name: replace(versions, end=versions.start, commit=versions.before)
            if void and versions.start is not None
            else versions
            for versions in self.ranges
        }

    def made_by(self, *, void: bool) -> str:
        """A digest of the SQL that produced all rows of the table; without this plan's rows, if it was cancelled."""
        return self.model if (self.replace or self.whole) and not void else self.built

    def __str__(self) -> str:
        return ", ".join(str(versions) for versions in self.ranges if not versions.is_empty)

    def to_bytes(self) -> bytes:
        # On disk the ranges are called `spans`, as in version 0.1.0.
        fields = {"spans" if name == "ranges" else name: value for name, value in asdict(self).items()}
        content = header_of(self, KIND, self.generation, self.time) | fields
        return json.dumps(content, indent=2, ensure_ascii=False).encode()

    @classmethod
    def from_bytes(cls, number: int, data: bytes, where: str, *, committed: bool = False) -> ChangePlan:
        """The plan in these bytes; an error that names `where` and the next step, if they are damaged."""
        with Parsing(where, committed=committed):
            content = json.loads(data)
            check_header(content, number, KIND, where)
            return cls(
                number=number,
                generation=content["generation"],
                ranges=tuple(VersionRange(**versions) for versions in content["spans"]),
                replace=content["replace"],
                rows=content["rows"],
                columns=content.get("columns", False),
                whole=content.get("whole", ""),
                model=content["model"],
                built=content.get("built", content["model"]),
                key=tuple(content.get("key", ())),
                ledger=content.get("ledger"),
                time=content["time"],
            )
