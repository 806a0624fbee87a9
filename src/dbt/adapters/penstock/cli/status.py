"""`penstock status`: every relation, those that need attention first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dbt.adapters.penstock.cli import screen
from dbt.adapters.penstock.cli.command import as_json, found_wrong
from dbt.adapters.penstock.cli.lake import Given, pass_given
from penstock.wording import count, size

if TYPE_CHECKING:
    from penstock.inspection.relations_status import RelationStatus

_COLUMNS = (
    "relation", "kind", "rows", "bytes", "files", "version", "changed", "last run", "waiting", "behind", "quarantined",
    "holes", "small", "deleted", "attention",
)  # fmt: skip
_LEFT = ("relation", "kind", "attention")


@click.command()
@click.argument("names", metavar="[TABLE]...", nargs=-1)
@as_json
@pass_given
def status(given: Given, names: tuple[str, ...], json: bool) -> None:
    """Every relation of the lake, or those that are named: what it holds, and what needs attention.

    Exit code 1 if a relation can't be read, or if its next run would fail.
    """
    from penstock.inspection.relations_status import relations_status, totals

    found = relations_status(given.lake, names)
    total = totals(found)
    if json:
        screen.print_json("status", root=given.lake.root, totals=total, relations=found)
    else:
        _show(found)
        screen.say(
            f"{count(total['relations'], 'relation')}, {total['attention']:,} need attention, {total['errors']:,} with errors",
            "dim",
        )
    if total["errors"]:
        found_wrong()


def _show(found: list[RelationStatus]) -> None:
    rows = [
        (
            one.name,
            one.kind,
            screen.number(one.rows),
            "" if one.bytes is None else size(one.bytes),
            screen.number(one.files),
            screen.number(one.version),
            screen.age(one.changed),
            screen.age(one.last_run),
            screen.some(one.waiting),
            screen.some(one.behind),
            screen.some(one.quarantined),
            screen.some(one.holes),
            screen.some(one.small_files),
            screen.some(one.deleted_rows),
            _attention(one),
        )
        for one in found
    ]
    screen.print_table(_COLUMNS, rows, right=[name for name in _COLUMNS if name not in _LEFT])


def _attention(one: RelationStatus) -> object:
    texts = [*([one.error] if one.error else []), *one.attention]
    style = {3: "bold red", 2: "yellow"}.get(one.urgency, "")
    return screen.styled("; ".join(texts), style)
