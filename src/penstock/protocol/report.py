"""What a run did, for people and for `run_results.json`."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Report:
    """What every run reports."""

    version: int | None = None
    """The table's Delta version after the run; None where there is no table."""
    warnings: list[str] = field(default_factory=list)
