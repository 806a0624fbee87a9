"""`penstock repair`: the ledger of a table against its log."""

from __future__ import annotations

import click

from dbt.adapters.penstock.cli import screen
from dbt.adapters.penstock.cli.command import as_json, found_wrong
from dbt.adapters.penstock.cli.lake import Given, pass_given

_STYLES = {"repairable": "yellow", "broken": "bold red", "note": ""}


@click.command()
@click.argument("table")
@click.option("--yes", is_flag=True, help="Repair what can be repaired. Without it, nothing is written.")
@as_json
@pass_given
def repair(given: Given, table: str, yes: bool, json: bool) -> None:
    """The ledger of a table against its log. No plan is ever invented.

    With --yes, the summary and compactions are written anew, and records of other lives are removed. Exit code 1 if
    something is left that is wrong.
    """
    from penstock.inspection.repair import repair as differences

    relation = given.lake.get(table)
    found = differences(given.lake, relation, yes=yes)
    if json:
        screen.print_json("repair", table=str(relation), findings=found)
    elif not found:
        screen.say(f"The ledger of {relation} fits its log", "green")
    else:
        screen.print_table(
            ("", "what", "where", "fix"),
            [
                (
                    screen.styled("repaired" if one.repaired else one.severity, _STYLES[one.severity]),
                    one.what,
                    one.where,
                    one.fix or ("" if one.repaired or one.severity == "note" else "`--yes` repairs it"),
                )
                for one in found
            ],
        )
    if any(one.severity != "note" and not one.repaired for one in found):
        found_wrong()
