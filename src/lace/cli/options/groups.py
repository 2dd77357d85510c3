"""Commands below a command: `lace key new`, `lace archive add`."""

from __future__ import annotations

import click


class SummaryGroup(click.Group):
    """A group that shows the whole first sentence of each command; click cuts it at the end of the line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, _summary(command)) for name, command in sorted(self.commands.items()) if not command.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _summary(command: click.Command) -> str:
    return " ".join((command.help or "").partition("\n\n")[0].split())
