"""The files that this run could not read. The next plan records them without reading them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from penstock.files.plan import FilePlan
from penstock.files.records import LINES, QUARANTINED, lines
from penstock.files.roots import Roots
from penstock.files.source import none
from penstock.secrets import redact


class Quarantine:
    """Unreadable files, each with the reason."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}
        """By the name in the ledger."""

    def add(self, files: Mapping[str, str], roots: Roots) -> None:
        """Add files by the paths that they are read from, each with the reason."""
        self._reasons |= {roots.known_as(path): redact(reason) for path, reason in files.items()}

    def split(self, files: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The files that may be read, and the lines for those that may not."""
        bad = pc.is_in(files["path"], pa.array(list(self._reasons), pa.string()))
        return files.filter(pc.invert(bad)), self._lines(files.filter(bad))

    def taken_out_of(self, plan: FilePlan) -> FilePlan:
        """A plan that is not written yet, with its unreadable files recorded as such."""
        return replace(plan, lines=pa.concat_tables(self.split(plan.lines)))

    def _lines(self, files: pa.Table) -> pa.Table:
        recorded = [
            lines(files.slice(index, 1), QUARANTINED, self._reasons[path])
            for index, path in enumerate(files["path"].to_pylist())
        ]
        return pa.concat_tables(recorded) if recorded else none(LINES)
