"""`lace fmt FILE…`: canonical order and spelling, comments kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from lace.cli.options.rules import chosen_limits, limit_option, read_text
from lace.cli.output.failure import ExitCode
from lace.cli.output.files import output_to
from lace.cli.output.output import say_data


@click.command("fmt")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--check", is_flag=True, help="Write nothing; list the files that would change and exit with 1.")
@click.option("--canonical", is_flag=True, help="Print the canonical text: no comments, no final line break.")
@limit_option
def command(files: tuple[str, ...], check: bool, canonical: bool, limit_words: Sequence[str]) -> ExitCode:
    """Write rule files in canonical order and spacing.

    Comments and annotations stay with the rule they precede; a repeated rule is kept once. `-` reads standard input and
    writes standard output.
    """
    if canonical and (check or len(files) != 1):
        raise click.UsageError("--canonical takes one file and cannot be combined with --check.")
    changed = [file for file in files if _formatted(file, limit_words, write=not check, canonical=canonical)]
    if check:
        for file in changed:
            say_data(file)
    return ExitCode.BAD if check and changed else ExitCode.OK


def _formatted(file: str, limit_words: Sequence[str], *, write: bool, canonical: bool) -> bool:
    """Format one file; return whether its text changed."""
    from lace.datalog.language.annotations import format_annotated, read_annotated
    from lace.datalog.language.canonical import canonical_text

    before = read_text(file)
    source = read_annotated(before, name=file, limits=chosen_limits(before, limit_words, file))
    if canonical:
        say_data(canonical_text(source.program), nl=False)
        return False
    after = format_annotated(source)
    if write and (file == "-" or after != before):
        with output_to(None if file == "-" else Path(file)) as sink:
            sink.write(after.encode())
    return after != before
