"""Version ranges: which versions of a source one plan brings in."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import PenstockError

REFRESH = "Run with --full-refresh (or set `on_cdf_gap: full_refresh`) to rebuild the table."


class Gap(PenstockError):
    """Changes are needed that can no longer be read."""

    def __init__(self, what: str, *, where: str, fix: str = REFRESH) -> None:
        super().__init__(what, where=where, fix=fix)


@dataclass(frozen=True)
class VersionRange:
    """The versions of one source that a plan brings in."""

    name: str
    location: str
    id: str
    start: int | None
    """The last version that is already in; None if the table is built from `end`."""
    end: int
    commit: str
    """A digest of the commit `end`. If the commit has another digest later, the log was created again."""
    before: str = ""
    """A digest of the commit `start`."""

    @property
    def is_empty(self) -> bool:
        return self.start == self.end

    def __str__(self) -> str:
        return f"{self.name} at {self.end}" if self.start is None else f"{self.name} {self.start + 1} to {self.end}"
