"""`penstock history`: the commits of a table, newest first."""

from __future__ import annotations

from datetime import datetime

import click

from dbt.adapters.penstock.cli import screen
from dbt.adapters.penstock.cli.command import as_json
from dbt.adapters.penstock.cli.files import Moment
from dbt.adapters.penstock.cli.lake import Given, pass_given
from penstock.wording import size

_COLUMNS = ("version", "time", "kind", "batch", "inserted", "updated", "deleted", "files", "bytes", "seconds", "what")
_STYLES = {"cancelled": "yellow", "other": "cyan", "refresh": "bold"}


@click.command()
@click.argument("table")
@click.option("--since", type=Moment(), help="Only commits since (2026-04-01, 2d, 12h).")
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="The newest only; 0 for all.")
@as_json
@pass_given
def history(given: Given, table: str, since: datetime | None, limit: int, json: bool) -> None:
    """Batches, merges, windows and commits of others, in one time line: rows, files and seconds."""
    from penstock.inspection.history import history as commits_of
    from penstock.inspection.table_ledger import TableLedger

    ledger = TableLedger.open(given.lake, table, check=False)
    found = commits_of(ledger, limit or None, since)
    if json:
        screen.print_json("history", table=str(ledger.relation), commits=found)
        return
    rows = [
        (
            event.version,
            screen.moment(event.time),
            screen.styled(event.kind, _STYLES.get(event.kind, "")),
            screen.number(event.batch),
            screen.some(event.rows_inserted),
            screen.some(event.rows_updated),
            screen.some(event.rows_deleted),
            screen.some(event.files),
            size(event.bytes) if event.bytes else "",
            "" if event.seconds is None else f"{event.seconds:.1f}",
            event.what or (event.operation if event.kind == "other" else ""),
        )
        for event in found
    ]
    screen.print_table(_COLUMNS, rows, right=[name for name in _COLUMNS if name not in ("time", "kind", "what")])
