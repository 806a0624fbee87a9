"""The report of a run, for people and for `run_results.json`."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Report:
    """The part of the report that all kinds of runs have."""

    version: int | None = None
    """The table's Delta version after the run; None where there is no table."""
    warnings: list[str] = field(default_factory=list)
