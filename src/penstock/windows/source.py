"""A path with date tokens (`landing/%Y/%m/%d/*.parquet`): only the folders of a window are listed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock.errors import NotFound
from penstock.files.source import FILES, Listings, none
from penstock.secrets import credentials_problem
from penstock.storage import is_uri
from penstock.windows.window import Window, floor

DATE = "_date"
"""The column of `@data` with the date from a file's path."""
_TOKENS = {"Y": "year", "m": "month", "d": "day", "j": "day", "H": "hour"}
_TOKEN = re.compile(r"%(.?)")
_GLOB = re.compile(r"[*?\[]")
_PIECE = re.compile(r"\*\*/|\[[^\]]+\]|.", re.DOTALL)
_WILD = {"**/": "(?:[^/]+/)*", "*": "[^/]*", "?": "[^/]"}


@dataclass(frozen=True)
class DatedFiles:
    """The files in the folder of one date."""

    moment: datetime
    files: pa.Table


@dataclass(frozen=True)
class DatedPath:
    """A path in which `%Y`, `%m`, `%d`, `%j` and `%H` stand for the parts of a date, and `*` for any name.

    >>> path = DatedPath("/landing/%Y/%m/%d/*.parquet")
    >>> path.root, path.unit
    ('/landing', 'day')
    """

    text: str

    @classmethod
    def problems(cls, text: Any) -> list[str]:
        if not isinstance(text, str) or not text.strip():
            return [f"`source_path` is a path with date tokens, such as landing/%Y/%m/%d/*.parquet, not {text!r}"]
        if problem := credentials_problem(text):
            return [f"`source_path` {problem}"]
        tokens = _TOKEN.findall(text)
        unknown = sorted({f"%{token}" for token in tokens if token not in _TOKENS})
        if unknown:
            return [f"`source_path` has {', '.join(unknown)}: known are %Y, %m, %d, %j and %H"]
        missing = {"m": "Y", "d": "m", "j": "Y", "H": "d"}
        lacks = [
            f"%{token} without %{needed}"
            for token, needed in missing.items()
            if token in tokens and needed not in tokens
        ]
        if "H" in tokens and "j" in tokens:
            lacks = [item for item in lacks if not item.startswith("%H")]
        if "Y" not in tokens:
            return [f"`source_path` has no date: it lacks %Y ({text})"]
        if lacks:
            return [f"`source_path` has {', '.join(lacks)}"]
        try:
            _matcher(_TOKEN.sub("0", text))
        except re.error as error:
            return [f"`source_path` has an invalid pattern ({error.msg}): {text}"]
        return []

    @property
    def unit(self) -> str:
        """The smallest part of a date in the path: hour, day, month or year."""
        units = [_TOKENS[token] for token in _TOKEN.findall(self.text)]
        return next(unit for unit in ("hour", "day", "month", "year") if unit in units)

    @property
    def root(self) -> str:
        """The folder above the first part of the path that varies."""
        return "/".join(self.text.split("/")[: self._fixed]) or ("/" if self.text.startswith("/") else ".")

    @cached_property
    def _fixed(self) -> int:
        """How many parts of the path are fixed. If a folder named `landing [1]` exists, its name is not a pattern."""
        parts = self.text.split("/")
        for index, part in enumerate(parts):
            if "%" in part:
                return index
            if _GLOB.search(part) and (is_uri(self.text) or not os.path.isdir("/".join(parts[: index + 1]))):
                return index
        return len(parts)

    @property
    def type(self) -> str:
        """The type of `_date`."""
        return "timestamp" if self.unit == "hour" else "date"

    def folders(self, window: Window) -> Iterator[tuple[datetime, str, str]]:
        """Each date of a window, with the folder to list and the pattern of the files below it."""
        whole = Window(floor(window.start, self.unit), window.end)
        for step in whole.steps(self.unit):
            parts = step.start.strftime(self.text).split("/")
            wild = (index for index, part in enumerate(parts) if index >= self._fixed and _GLOB.search(part))
            fixed = next(wild, len(parts) - 1)
            yield step.start, "/".join(parts[:fixed]), "/".join(parts[fixed:])

    def files(self, window: Window, listings: Listings) -> list[DatedFiles]:
        """The files of a window, by their date; a missing folder has no files.

        An error if the fixed part of the path is missing, or has no object on an object store. Otherwise a mistyped
        prefix would look like windows without rows, and the rows in the table would be deleted.
        """
        found = []
        for moment, folder, pattern in self.folders(window):
            try:
                listed = listings.of([folder])
            except NotFound:
                if not listings.has_root(self.root):
                    raise
                continue
            if listed.num_rows == 0:
                refuse_missing(self.root, listings, "source_path")
            wanted = _matcher(pattern)
            below = len(folder.rstrip("/")) + 1
            keep = [wanted.fullmatch(path[below:]) is not None for path in listed["path"].to_pylist()]
            kept = listed.filter(pa.array(keep, pa.bool_())) if keep else none(FILES)
            if kept.num_rows:
                found.append(DatedFiles(moment, kept))
        return found


def refuse_missing(root: str, listings: Listings, key: str) -> None:
    """Reject a root without any file: an object store lists a mistyped prefix as empty."""
    if not listings.has_root(root):
        raise NotFound(
            "There is no object below this prefix, so the rows of the window would be deleted",
            where=root,
            fix=f"Correct `{key}`, or put a file there. To remove rows, delete them from the table.",
        )


def _matcher(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression: `*` and `?` match within a name, `**/` matches folders."""

    def translate(found: re.Match[str]) -> str:
        piece = found.group()
        return _WILD.get(piece) or (piece.replace("[!", "[^") if len(piece) > 1 else re.escape(piece))

    return re.compile(_PIECE.sub(translate, pattern), re.DOTALL)
