"""`penstock init`: an empty project."""

from __future__ import annotations

from pathlib import Path

import click

from dbt.adapters.penstock.cli import screen, starter
from dbt.adapters.penstock.cli.command import as_json


@click.command()
@click.argument("folder", metavar="[DIR]", default="penstock_project", type=click.Path(path_type=Path))
@as_json
def init(folder: Path, json: bool) -> None:
    """An empty project in a new folder: dbt_project.yml, profiles.yml, a first model. Nothing is asked or started."""
    written = starter.write_empty(folder)
    if json:
        screen.print_json("init", folder=str(folder), files=[str(path) for path in written])
        return
    for path in written:
        screen.say(f"wrote {path}")
    screen.say(f"Next: cd {folder} && dbt build")
