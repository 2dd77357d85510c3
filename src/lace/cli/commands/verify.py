"""`lace verify PATH`: re-hash and re-verify everything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.options.arguments import lace_argument, opened
from lace.cli.output.failure import ExitCode
from lace.cli.output.output import count_of, json_option, metered, print_json, say

if TYPE_CHECKING:
    from lace.porcelain.lace import Lace


@click.command("verify")
@lace_argument
@json_option
def command(path: Path, as_json: bool) -> ExitCode:
    """Re-hash every record, re-verify every signature.

    Every fact and index entry is derived again from the bytes of the records and compared with what the lace keeps.
    Prints every mismatch, and exits with 1 if there is any; `lace repair` salvages what can be read. Content that lacks
    some of its parts is not damaged, only incomplete: it is listed, and the exit code is 10.
    """
    damaged = incomplete = 0
    with opened(path) as lace:
        total = lace.stat().records
        with metered("verifying", total) as meter:
            for damage in lace.verify(progress=meter.advance):
                damaged += 1
                if as_json:
                    print_json({"hash": damage.hash, "number": damage.id, "finding": damage.finding})
                else:
                    where = f"record {damage.id} {damage.hash}".rstrip() if damage.id else "the store"
                    say(f"{where}: {damage.finding}")
        if not damaged:  # which content lacks parts can only be told from sound facts
            incomplete = _print_incomplete(lace, as_json=as_json)
    if not as_json:
        result = f"{count_of(damaged, 'finding')}" if damaged else "every record holds"
        if incomplete:
            result += f", and {count_of(incomplete, 'content', 'contents')} incomplete"
        elif not damaged:
            result = "everything holds"
        say(f"verified {count_of(total, 'record')}: {result}", err=bool(damaged or incomplete))
    if damaged:
        return ExitCode.BAD
    return ExitCode.INCOMPLETE if incomplete else ExitCode.OK


def _print_incomplete(lace: Lace, *, as_json: bool) -> int:
    found = 0
    for one in lace.incomplete():
        found += 1
        if as_json:
            print_json({"incomplete": one.to_json()})
        else:
            say(f"{one} (record {one.hash})")
    return found
