"""The files behind a location that Spark would read: a file, a folder, or a pattern."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.storage.objects import Entry, Storage

_PATTERN = re.compile(r"[*?\[{]")
_PIECE = re.compile(r"\*|\?|\[([!^]?)([^\]]+)\]|\{([^}]*)\}|.", re.DOTALL)
# Spark skips files with such names.
_HIDDEN = re.compile(r"(?:^|/)(?:\.|_(?![^/]*=))")


def files_at(location: str, options: dict[str, str] | None = None) -> Iterator[Entry]:
    """The files that Spark reads at a location: one file, the files of a folder, or the files that match a pattern."""
    pattern = _PATTERN.search(location)
    if pattern is not None:
        folder = location[: pattern.start()].rpartition("/")[0]
        matcher = _compiled(location[len(folder) + 1 :])
        found = (entry for entry in Storage(folder or "/", options).list("") if matcher.fullmatch(entry.path))
    else:
        folder, _, name = location.rpartition("/")
        one = None if folder.endswith("/") else Storage(folder or "/", options).head(name)
        if one is not None:
            yield one
            return
        found = (entry for entry in Storage(location, options).list(""))
    yield from (entry for entry in found if not _HIDDEN.search(entry.path))


def _compiled(pattern: str) -> re.Pattern[str]:
    """A Hadoop path pattern as a regular expression. It also matches everything below a folder that it matches."""

    def translated(found: re.Match[str]) -> str:
        piece, (negated, characters, choices) = found.group(), found.groups()
        if piece in ("*", "?"):
            return "[^/]*" if piece == "*" else "[^/]"
        if characters is not None:
            escaped = characters.replace("\\", "\\\\")
            return f"[{'^' if negated else ''}{escaped}]"
        if choices is not None:
            return "(?:" + "|".join(_PIECE.sub(translated, choice) for choice in choices.split(",")) + ")"
        return re.escape(piece)

    return re.compile(_PIECE.sub(translated, pattern) + "(?:/.*)?", re.DOTALL)
