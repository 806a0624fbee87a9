"""Microbatch: a table built from windows of event time. Each window is replaced as a whole, or added once.

A run begins in `meeting`: dbt's threads bring the windows to `WindowRun.run`, which makes a `job` for each pack.
"""

from penstock.windows.config import WindowSettings
from penstock.windows.job import Target
from penstock.windows.meeting import Request, WindowRun, WindowRuns
from penstock.windows.query import FileSelect, Select, TableSelect
from penstock.windows.report import Outcome
from penstock.windows.source import DatedPath
from penstock.windows.window import Window

__all__ = [
    "DatedPath",
    "FileSelect",
    "Outcome",
    "Request",
    "Select",
    "TableSelect",
    "Target",
    "Window",
    "WindowRun",
    "WindowRuns",
    "WindowSettings",
]
