"""`lace completion SHELL`: a script that lets a shell complete commands, options and what they name."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from lace.cli.output.output import say_data

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the shell completion script for bash, zsh or fish.

    It completes commands, options, files, keys of the ring, names of people, remotes and coordinates.

    \b
    bash: echo 'eval "$(lace completion bash)"' >> ~/.bashrc
    zsh:  echo 'eval "$(lace completion zsh)"' >> ~/.zshrc
    fish: lace completion fish > ~/.config/fish/completions/lace.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}", ctx)
    say_data(kind(ctx.find_root().command, {}, "lace", "_LACE_COMPLETE").source())
