"""What people see: tables on a terminal, without colours elsewhere; and JSON for programs."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

FORMAT = 1
"""The version of the JSON documents. A key is added without a new version; none is renamed or removed."""
_WIDE = 200


def print_json(command: str, **content: Any) -> None:
    """Print one document: the command, the version of the format, and the answer."""
    document = {"command": command, "format_version": FORMAT, **content}
    click.echo(json.dumps(document, indent=2, ensure_ascii=False, default=_plain))


def console() -> Console:
    """The terminal: colours only there, and none with NO_COLOR. Elsewhere lines are not cut at 80 columns."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    return Console(highlight=False, soft_wrap=not terminal, width=None if terminal else _WIDE, emoji=False)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Iterable[str] = (), title: str | None = None
) -> None:
    """Print a table without frames. Columns without any value are left out."""
    from rich.table import Table
    from rich.text import Text

    lines = [["" if value is None else value for value in row] for row in rows]
    used = [index for index in range(len(columns)) if any(str(line[index]) for line in lines)]
    table = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
    for index in used:
        justify: Any = "right" if columns[index] in set(right) else "left"
        table.add_column(columns[index], justify=justify, overflow="fold", no_wrap=justify == "right")
    for line in lines:
        table.add_row(*(line[index] if isinstance(line[index], Text) else Text(str(line[index])) for index in used))
    console().print(table)


def styled(text: str, style: str) -> Any:
    """A text with a style, for a cell."""
    from rich.text import Text

    return Text(text, style=style)


def say(text: str, style: str = "") -> None:
    """Print a line."""
    console().print(styled(text, style))


def number(value: int | None) -> str:
    """
    >>> number(12345), number(None), number(0)
    ('12,345', '', '0')
    """
    return "" if value is None else f"{value:,}"


def some(value: int | None) -> str:
    """A number where 0 needs no look.

    >>> some(3), some(0)
    ('3', '')
    """
    return number(value) if value else ""


def age(moment: datetime | None, now: datetime | None = None) -> str:
    """How long ago a moment is.

    >>> age(datetime(2026, 4, 1, tzinfo=timezone.utc), datetime(2026, 4, 3, 1, tzinfo=timezone.utc))
    '2 d'
    """
    if moment is None:
        return ""
    seconds = max(0, int(((now or datetime.now(timezone.utc)) - moment).total_seconds()))
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def moment(value: datetime | None) -> str:
    """A time in UTC, as tables show it.

    >>> moment(datetime(2026, 4, 1, 12, 30, 5, tzinfo=timezone.utc))
    '2026-04-01 12:30:05'
    """
    return "" if value is None else f"{value.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S}"


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} is no JSON")
