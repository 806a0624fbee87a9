"""`penstock files`: the files of a table, what happened to one of them, and `release`."""

from __future__ import annotations

import os
import re
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import click

from dbt.adapters.penstock.cli import screen
from dbt.adapters.penstock.cli.command import as_json, found_wrong
from dbt.adapters.penstock.cli.lake import Given, pass_given
from penstock.wording import count, size

if TYPE_CHECKING:
    from penstock.inspection.file_story import FileRecord, FileStory

_STATUSES = ("ingested", "replaced", "skipped", "quarantined", "released", "waiting")
_SHOW = "show"
_AGO = re.compile(r"(\d+) ?(d|h|min|m)")
_UNITS = {"d": "days", "h": "hours", "min": "minutes", "m": "minutes"}


class Moment(click.ParamType):  # type: ignore[type-arg]
    """A time: a date, an ISO time, or how long ago (`2d`, `12h`, `30min`). Without a zone it is in UTC."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        if found := _AGO.fullmatch(value.strip()):
            return datetime.now(timezone.utc) - timedelta(**{_UNITS[found.group(2)]: int(found.group(1))})
        try:
            moment = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
        except ValueError:
            self.fail(f"{value!r} is no time: write 2026-04-01, 2026-04-01T12:30, 2d, 12h or 30min", param, ctx)
        return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


class Files(click.Group):
    """`files TABLE` is `files show TABLE`: the name of a table has a dot, so it is no command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = [_SHOW, *args]
        return super().parse_args(ctx, args)


@click.group(cls=Files, subcommand_metavar="TABLE [OPTIONS] | release TABLE PATH...")
def files() -> None:
    """The files of a table, those that wait included. `files show --help` lists the options."""


@files.command(_SHOW)
@click.argument("table")
@click.option("--why", metavar="PATH", help="What happened to this file: which batch took it, or why it waits.")
@click.option("--status", type=click.Choice(_STATUSES), help="Only files with this status.")
@click.option("--since", type=Moment(), help="Only files that were recorded since (2026-04-01, 2d, 12h).")
@click.option("--limit", type=click.IntRange(0), default=50, show_default=True, help="The newest only; 0 for all.")
@as_json
@pass_given
def show(
    given: Given, table: str, why: str | None, status: str | None, since: datetime | None, limit: int, json: bool
) -> None:
    """The files of a table, the newest last; or, with --why, what happened to one file.

    Exit code 1 if the next run would fail; with --why, if the file is not in the table.
    """
    from penstock.files.source import Listings
    from penstock.inspection import file_story
    from penstock.inspection.table_ledger import TableLedger

    ledger = TableLedger.open(given.lake, table, check=False)
    listings = Listings(given.lake.storage_options)
    if why is not None:
        _tell(file_story.why(ledger, why, listings, os.getcwd()), str(ledger.relation), json)
        return
    found, error = file_story.files_of(ledger, listings)
    if status is not None:
        import pyarrow.compute as pc

        found = found.filter(pc.equal(found["status"], status))
    if since is not None:
        found = file_story.since(found, since)
    total = found.num_rows
    if limit:
        found = found.slice(max(0, total - limit))
    rows = list(file_story.records_of(found))
    if json:
        screen.print_json("files", table=str(ledger.relation), total=total, error=error, files=rows)
    else:
        _show(rows)
        left = f", the newest {len(rows):,} are shown (--limit 0 shows all)" if len(rows) < total else ""
        screen.say(f"{count(total, 'file')}{left}", "dim")
        if error is not None:
            screen.say(f"The next run fails: {error}", "bold red")
    if error is not None:
        found_wrong()


def _show(rows: list[FileRecord]) -> None:
    screen.print_table(
        ("batch", "recorded", "status", "written", "size", "path", "reason"),
        [
            (
                "" if row.batch is None else row.batch,
                screen.moment(row.recorded),
                screen.styled(row.status, {"quarantined": "yellow", "waiting": "cyan"}.get(row.status, "")),
                screen.moment(row.modified),
                size(row.size),
                row.path,
                row.reason,
            )
            for row in rows
        ],
        right=("batch", "size"),
    )


def _tell(story: FileStory, table: str, json: bool) -> None:
    if json:
        screen.print_json(
            "files why", table=table, **{name: getattr(story, name) for name in story.__dataclass_fields__}
        )
    else:
        screen.say(f"{story.path}: {story.outcome}", "bold green" if story.outcome == "in the table" else "bold yellow")
        screen.say(f"{story.text}.")
        if story.fix:
            screen.say(story.fix)
        if len(story.records) > 1:
            _show(list(story.records))
    if story.outcome != "in the table":
        found_wrong()


@files.command()
@click.argument("table")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@as_json
@pass_given
def release(given: Given, table: str, paths: tuple[str, ...], json: bool) -> None:
    """Take files out of quarantine: they count as new again, and the next run reads them.

    This is a commit without data. Spark starts only for a table that delta-rs can't write.
    """
    from penstock.errors import PenstockError
    from penstock.files.release import release as take_out
    from penstock.protocol.journal import Journal
    from penstock.storage import given_location

    lake = given.lake
    lake.check_writable()
    relation = lake.get(table)
    if relation.kind != "table":
        raise PenstockError(f"{relation} is a {relation.kind}, so no file of it is in quarantine")
    whole = [given_location(path, os.getcwd(), options=lake.storage_options) for path in paths]
    lake.runner.check_commits(relation.location)
    done = take_out(Journal(relation.location, lake.storage_options, lake.runner.commit_marks), whole)
    if json:
        screen.print_json(
            "files release", table=str(relation), paths=done.paths, plan=done.number, version=done.version
        )
        return
    for path in done.paths:
        screen.say(f"{path} is released: the next run of {relation} reads it")
