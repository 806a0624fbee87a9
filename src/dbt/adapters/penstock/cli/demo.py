"""`penstock demo`: a project with data to play with, built."""

from __future__ import annotations

from pathlib import Path

import click

from dbt.adapters.penstock.cli import screen, starter
from dbt.adapters.penstock.cli.command import as_json, found_wrong


@click.command()
@click.argument("folder", metavar="[DIR]", default="penstock_demo", type=click.Path(path_type=Path))
@click.option("--build/--no-build", default=True, help="Run `dbt build` in it, which starts Spark.")
@as_json
def demo(folder: Path, build: bool, json: bool) -> None:
    """A ready project with data to play with: files, changes and a daily sum. `dbt build` runs in it, with Spark.

    Its README.md says what to try next. Exit code 1 if the build fails.
    """
    written = starter.write_demo(folder)
    is_built = build and _build(folder, quiet=json)
    if json:
        screen.print_json("demo", folder=str(folder), files=[str(path) for path in written], built=is_built)
    else:
        screen.say(f"{len(written)} files are in {folder}", "bold")
        screen.say(f"Next: cd {folder} && penstock status" if is_built else f"Next: cd {folder} && dbt build")
    if build and not is_built:
        found_wrong()


def _build(folder: Path, *, quiet: bool) -> bool:
    from dbt.cli.main import dbtRunner

    options = ["--project-dir", str(folder), "--profiles-dir", str(folder), *(["--quiet"] if quiet else [])]
    return bool(dbtRunner().invoke(["build", *options]).success)
