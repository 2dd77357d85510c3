"""The `lace` group: finds a command's module by name, loads it on call, and turns every failure into one block of text.

Rule: importing this module imports click and nothing else that costs time.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from lace.cli.catalogue import BY_NAME, CATALOGUE, SECTIONS
from lace.cli.output.failure import ExitCode, explain_failure, leave_quietly, print_json_failure
from lace.cli.output.output import note_json, say, wants_json
from lace.cli.output.text import styled, visible
from lace.cli.output.words import note_names
from lace.cli.platforms import refusal

INTRODUCTION = """Keep signed records in a file, and sync them between machines by rules.

A lace is one file of records. You store content under a coordinate, //GROUP//APP//NAME, with a time and, if you like,
a signature; its hash is its permanent name. Nothing is changed in place: a newer record under the same coordinate
becomes the new tip."""

EXAMPLES = """
$ lace init notes.lace
$ lace key new me
$ echo hello | lace put notes.lace --group u --app ding --name links/1 --sign me -
$ lace ls notes.lace
$ lace get notes.lace //u//ding//links/1
"""

CLOSING = """`lace COMMAND --help` explains a command; `lace help TOPIC` explains coordinates, addresses, limits,
environment and exit-codes. With --json a command prints one JSON object per line."""


class LaceGroup(click.Group):
    """A group whose commands are imported only when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [entry.name for entry in CATALOGUE]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = BY_NAME.get(cmd_name)
        if entry is None:
            return None
        command = import_module(entry.module).command
        if not isinstance(command, click.Command):
            raise TypeError(f"{entry.module}.command is not a click command")
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        note_json(ctx, args)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in BY_NAME and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(f"There is no command {args[0]!r}.{_nearest(args[0])}", ctx)
        if args and (why := refusal(sys.platform, args[0])):
            raise click.UsageError(why, ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Command names from the table, so that completing one imports nothing."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [
            CompletionItem(entry.name, help=entry.summary) for entry in CATALOGUE if entry.name.startswith(incomplete)
        ]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            for paragraph in INTRODUCTION.split("\n\n"):
                formatter.write_text(paragraph)
                formatter.write_paragraph()
        _write_heading(formatter, "Start here")
        formatter.write("".join(f"  {line}\n" for line in EXAMPLES.strip().splitlines()))
        self.format_commands(ctx, formatter)
        self.format_options(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text(CLOSING)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        _write_heading(formatter, "Options")
        with formatter.indentation():
            formatter.write_dl([record for p in self.get_params(ctx) if (record := p.get_help_record(ctx))])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(len(entry.name) for entry in CATALOGUE)
        for section in SECTIONS:
            rows = [(entry.name.ljust(width), entry.summary) for entry in CATALOGUE if entry.section == section]
            if rows:
                formatter.write_paragraph()
                _write_heading(formatter, section)
                with formatter.indentation():
                    formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a failure becomes one block on stderr and a documented exit code."""
        debug = bool(ctx.params.get("debug"))
        note_names(ctx, _name_of)
        try:
            outcome = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            leave_quietly()
            ctx.exit(ExitCode.BROKEN_PIPE)
        except click.ClickException as error:
            # The message repeats what was typed or pasted, which may steer a terminal.
            error.message = visible(error.message)  # type: ignore[misc]  # final, but nothing else holds the text
            if wants_json():
                print_json_failure(error.format_message(), [], error.exit_code)
                ctx.exit(error.exit_code)
            raise
        except (click.exceptions.Exit, click.Abort):
            raise
        except (Exception, KeyboardInterrupt) as error:  # the one place where a failure becomes text and a number
            if debug:
                raise
            ctx.exit(explain_failure(error))
        if isinstance(outcome, ExitCode):
            ctx.exit(outcome)
        return outcome


def _name_of(verifier: str) -> str | None:
    """How a key is called in the lace of the command that runs."""
    from lace.cli.options.names import name_of

    return name_of(verifier)


def _write_heading(formatter: click.HelpFormatter, text: str) -> None:
    formatter.write(styled(f"{text}:", bold=True) + "\n")


def _nearest(name: str) -> str:
    """A hint that names the commands spelled most like `name`; without one, where to find them all."""
    from difflib import get_close_matches

    close: Sequence[str] = get_close_matches(name, list(BY_NAME), n=3)
    return f" Did you mean {' or '.join(close)}?" if close else " `lace --help` lists them."


def _show_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import PackageNotFoundError, version

        try:
            say(f"lace {version('lace-protocol')}")
        except PackageNotFoundError:
            say("lace, run from source (not installed)")
        ctx.exit()


@click.command(
    "lace", cls=LaceGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option("--debug", is_flag=True, help="Show tracebacks instead of short errors.")
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
def app(debug: bool) -> None:
    """Keep signed records in a file, and sync them between machines by rules."""
