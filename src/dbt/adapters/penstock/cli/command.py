"""The group of commands: its options, its errors and its exit codes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from dbt.adapters.penstock.cli.lake import Given, lake_options
from penstock.errors import PenstockError
from penstock.secrets import redact

WRONG = 1
"""The exit code of a command that found something wrong, or failed."""

COMMANDS = {
    "plan": "What `dbt run` would do now, without running anything.",
    "status": "Every relation of the lake: what it holds, and what needs attention.",
    "files": "The files of a table, and what happened to one of them.",
    "history": "Batches, merges, windows and commits of others, in one time line.",
    "repair": "The ledger of a table against its log.",
    "doctor": "Java, memory, versions, cache, jars, root and store, and what to do about each.",
    "verify": "A table, recomputed by Spark and compared.",
    "init": "An empty project.",
    "demo": "A ready project with data to play with, built by Spark.",
    "completion": "The completion script of bash, zsh or fish.",
}
"""The commands with their help, in the order of the help page. A command's module is imported when it is called."""

F = TypeVar("F", bound=Callable[..., Any])


class Commands(click.Group):
    """A group that imports a command's module when the command is called, and shows errors as one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"dbt.adapters.penstock.cli.{cmd_name}")
        command = getattr(module, cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if ctx.params.get("debug"):
                raise
            click.echo(_line(error), err=True)
            ctx.exit(WRONG)


def _line(error: Exception) -> str:
    if isinstance(error, PenstockError):
        return f"Error: {error}"
    text = " ".join(str(error).split())
    return f"Error: {type(error).__name__}: {redact(text)}. With `penstock --debug …` you see where it comes from."


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@lake_options
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="dbt-penstock", prog_name="penstock")
@click.pass_context
def penstock(ctx: click.Context, /, debug: bool) -> None:
    """Ask a lake of penstock: what is in it, what happened, and what a run would do.

    Exit codes: 0 all is fine, 1 something is wrong, 2 the command or the config is wrong.
    """
    ctx.ensure_object(Given)


def as_json(command: F) -> F:
    """The option that every command has."""
    return click.option("--json", "json", is_flag=True, help="Print one JSON document.")(command)


def found_wrong() -> None:
    """End the command with the exit code for something that is wrong."""
    sys.stdout.flush()
    click.get_current_context().exit(WRONG)
