"""The results of windows and of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.delta.commit_metrics import CommitMetrics
from penstock.protocol.report import Report
from penstock.windows.window import Window, span
from penstock.wording import count


@dataclass(frozen=True)
class Outcome:
    """The result of one window, as dbt shows it."""

    message: str
    rows: int = 0
    files: int = 0
    bytes: int = 0
    version: int | None = None


@dataclass
class WindowReport(Report):
    """The windows and commits of one job."""

    commits: list[CommitMetrics] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    """The windows that this job brought in."""
    committed: bool = False
    """Whether this job committed a plan."""
    superseded: bool = False
    """Whether another run replaced the table by a plan that is later than this job's."""

    @property
    def rows(self) -> int:
        return sum(commit.rows_inserted for commit in self.commits)

    def add(self, windows: Sequence[Window], commit: CommitMetrics | None) -> None:
        """Take in windows and their commit; None where Delta's log does not show it."""
        self.windows += windows
        if commit is not None:
            self.commits.append(commit)

    def outcome(self, asked: Sequence[Window]) -> Outcome:
        """The result of the windows that were asked for; names the whole range if the job brought in others."""
        others = len(self.windows) > 1 or tuple(self.windows) != tuple(asked)
        return Outcome(
            f"OK {count(self.rows, 'row')}" + (f" of {span(self.windows)}" if others and self.windows else ""),
            self.rows,
            sum(commit.files for commit in self.commits),
            sum(commit.bytes for commit in self.commits),
            max((commit.version for commit in self.commits), default=None),
        )
