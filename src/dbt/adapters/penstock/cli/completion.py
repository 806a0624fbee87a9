"""`penstock completion`: the script that completes commands and options in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from dbt.adapters.penstock.cli import screen
from dbt.adapters.penstock.cli.command import as_json

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@as_json
@click.pass_context
def completion(ctx: click.Context, /, shell: str, json: bool) -> None:
    """The completion script of a shell: eval "$(penstock completion bash)" in ~/.bashrc, zsh the same in ~/.zshrc;
    penstock completion fish > ~/.config/fish/completions/penstock.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(ctx.find_root().command, {}, "penstock", "_PENSTOCK_COMPLETE").source()
    if json:
        screen.print_json("completion", shell=shell, script=script)
    else:
        click.echo(script)
