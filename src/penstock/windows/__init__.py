"""Microbatch: a table built by windows of event time, each replaced as a whole, or added once."""

from penstock.windows.config import WindowSettings
from penstock.windows.job import Target
from penstock.windows.meeting import Outcome, Request, WindowRun, WindowRuns
from penstock.windows.query import FileSelect, Select, TableSelect, column_type
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
    "column_type",
]
