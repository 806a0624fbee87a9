"""The command `penstock`: asks the engine, and shows the answers on a terminal or as JSON.

| module | what it holds |
|---|---|
| `command` | the group of commands, its options, errors and exit codes |
| `lake` | the lake of a command: `--root`, or the dbt profile of the current folder |
| `screen` | tables on a terminal, and JSON |
| the others | one command each |

With `--root`, nothing of dbt is imported. Each command's module is imported when it is called.
"""

from __future__ import annotations


def main() -> None:
    """The entry point of the command."""
    from dbt.adapters.penstock.cli.command import penstock

    penstock(prog_name="penstock")
