"""Measurements as a table: on the terminal, and kept in docs/benchmarks.md."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from rich.console import Console
from rich.table import Table

KEPT = Path(__file__).parents[1] / "docs" / "benchmarks.md"
_START, _END = "<!-- {name} -->", "<!-- /{name} -->"


@dataclass(frozen=True)
class Measurement:
    """One piece of work: how long it took here and there, in the same run."""

    work: str
    ours: float
    peer: str
    theirs: float
    target: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs

    @property
    def row(self) -> tuple[str, ...]:
        target = "" if self.target is None else f"≤ {self.target:g}×"
        return (
            self.work,
            f"{self.ours:.2f} s",
            self.peer,
            f"{self.theirs:.2f} s",
            f"{self.ratio:.2f}×",
            target,
            self.note,
        )


_HEADINGS = ("work", "penstock", "against", "time", "ratio", "to reach", "note")


def show(name: str, title: str, measurements: list[Measurement]) -> None:
    """Print the table and put it into the page, in place of the last one of its name."""
    table = Table(title=title)
    for heading in _HEADINGS:
        table.add_column(heading)
    for measurement in measurements:
        table.add_row(*measurement.row)
    Console(width=160).print(table)
    _keep(name, _markdown(title, measurements))


def _markdown(title: str, measurements: list[Measurement]) -> str:
    lines = [f"## {title}", "", f"{date.today()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}", ""]
    lines += ["| " + " | ".join(_HEADINGS) + " |", "|" + "---|" * len(_HEADINGS)]
    lines += ["| " + " | ".join(measurement.row) + " |" for measurement in measurements]
    return "\n".join(lines)


def _keep(name: str, text: str) -> None:
    start, end = _START.format(name=name), _END.format(name=name)
    page = (
        KEPT.read_text() if KEPT.exists() else "# Benchmarks\n\nThe last run of `make bench`; ratios inside one run.\n"
    )
    block = f"{start}\n{text}\n{end}"
    if start in page:
        page = page[: page.index(start)] + block + page[page.index(end) + len(end) :]
    else:
        page = f"{page.rstrip()}\n\n{block}\n"
    KEPT.write_text(page)
