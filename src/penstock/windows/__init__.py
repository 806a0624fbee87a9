"""Microbatch: a table built by windows of event time, each replaced as a whole, or added once."""

from penstock.windows.dated import DatedPath
from penstock.windows.run import Outcome, Request, WindowRun, WindowRuns
from penstock.windows.select import FileSelect, Select, TableSelect, column_type
from penstock.windows.settings import WindowSettings
from penstock.windows.window import Window
from penstock.windows.work import Target

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
