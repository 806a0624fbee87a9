"""`penstock doctor`: checks this machine and the lake's store."""

from __future__ import annotations

import click

from dbt.adapters.penstock.cli import screen
from dbt.adapters.penstock.cli.command import as_json, found_wrong
from dbt.adapters.penstock.cli.lake import Given, pass_given

_STYLES = {"ok": "green", "warning": "yellow", "error": "bold red"}


@click.command()
@as_json
@pass_given
def doctor(given: Given, json: bool) -> None:
    """Java, memory, versions, cache, jars, root and store, and what to do about each. No JVM starts.

    A hidden object is written below the root and deleted. Exit code 1 if a check finds an error.
    """
    from penstock.inspection.doctor import doctor as checks_of

    checks = checks_of(given.unchecked, given.unchecked.settings)
    if json:
        screen.print_json("doctor", root=given.unchecked.root, checks=checks)
    else:
        rows = [
            (
                screen.styled(check.verdict, _STYLES[check.verdict]),
                check.name,
                check.found if check.fix is None else f"{check.found}\n→ {check.fix}",
            )
            for check in checks
        ]
        screen.print_table(("", "check", "found"), rows)
    if any(check.verdict == "error" for check in checks):
        found_wrong()
