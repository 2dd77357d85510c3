"""`lace verify PATH`: re-hash and re-verify everything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.options.arguments import lace_argument, opened
from lace.cli.output.failure import ExitCode
from lace.cli.output.output import BAD, GOOD, NOTE, json_option, print_json, say, say_tree, say_verdict
from lace.cli.output.progress import metered
from lace.cli.output.words import count_of

if TYPE_CHECKING:
    from lace.porcelain.completeness import Incomplete


MOST_SHOWN = 1000  # findings, for people; --json has all


@click.command("verify")
@lace_argument
@json_option
def command(path: Path, as_json: bool) -> ExitCode:
    """Re-hash every record, re-verify every signature.

    Every fact and index entry is derived again from the bytes of the records and compared with what the lace keeps.
    The first line is the verdict; every mismatch follows, and the exit code is 1 if there is any. `lace repair`
    salvages what can be read. Content that lacks some of its parts is not damaged, only incomplete: it is listed, and
    the exit code is 10.
    """
    damaged = 0
    found: list[str] = []
    incomplete: list[Incomplete] = []
    with opened(path) as lace:
        total = lace.stat().records
        with metered("verifying", total) as meter:
            for damage in lace.verify(progress=meter.advance):
                damaged += 1
                if as_json:
                    print_json({"hash": damage.hash, "number": damage.id, "finding": damage.finding})
                elif damaged <= MOST_SHOWN:
                    where = f"record {damage.id} {damage.hash}".rstrip() if damage.id else "the store"
                    found.append(f"{where}: {damage.finding}")
        if not damaged:  # which content lacks parts can only be told from sound facts
            incomplete = list(lace.incomplete())
    if as_json:
        for one in incomplete:
            print_json({"incomplete": one.to_json()})
    else:
        _print(total, damaged, found, incomplete)
    if damaged:
        return ExitCode.BAD
    return ExitCode.INCOMPLETE if incomplete else ExitCode.OK


def _print(total: int, damaged: int, found: Sequence[str], incomplete: Sequence[Incomplete]) -> None:
    """The verdict, then what was found."""
    if damaged:
        said = count_of(damaged, "finding")
    elif incomplete:
        said = f"every record holds, but {count_of(len(incomplete), 'content', 'contents')} incomplete"
    else:
        said = "everything holds"
    say_verdict(BAD if damaged else NOTE if incomplete else GOOD, f"verified {count_of(total, 'record')}: {said}")
    for line in found:
        say_tree(f"  {line}")
    for one in incomplete[:MOST_SHOWN]:
        say_tree(f"  {one} (record {one.hash})")
    if (more := max(damaged, len(incomplete)) - MOST_SHOWN) > 0:
        say(f"  and {more:,} more; --json names them all")
