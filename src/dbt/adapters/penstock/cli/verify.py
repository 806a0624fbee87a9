"""`penstock verify`: a table, recomputed by Spark and compared."""

from __future__ import annotations

import click

from dbt.adapters.penstock.cli import screen
from dbt.adapters.penstock.cli.command import as_json, found_wrong
from dbt.adapters.penstock.cli.lake import Given, pass_given
from penstock.wording import count


@click.command()
@click.argument("table")
@as_json
@pass_given
def verify(given: Given, table: str, json: bool) -> None:
    """Recompute a table and compare it: a cdf_merge model row by row, at the source versions that its last commit
    recorded; a model over files by the rows of each file, against a fresh read. Spark starts; nothing is written.

    Exit code 1 if a row is missing, doubled or different.
    """
    if given.root is not None:
        raise click.UsageError("`verify` computes a model of a dbt project, so it does not take --root.")
    given.credentials  # noqa: B018 - an error of the profile has the exit code of the config
    from dbt.adapters.penstock.cli.project import Project

    relation, found = Project(given).verify(table)
    if json:
        fields = {name: getattr(found, name) for name in found.__dataclass_fields__}
        screen.print_json("verify", table=relation, right=found.is_right, **fields)
    else:
        for note in found.notes:
            screen.say(f"Note: {note}", "cyan")
        if found.is_right:
            screen.say(f"{relation} is right: {count(found.rows, 'row')}, compared by {found.compared}", "green")
        else:
            screen.say(f"{relation}: {found.missing:,} rows are missing, {found.extra:,} are too many", "bold red")
            screen.print_table(
                ("", "computed", "in the table", "row"),
                [(one.kind, one.computed, one.found, one.row) for one in found.examples],
                right=("computed", "in the table"),
            )
    if not found.is_right:
        found_wrong()
