"""`lace doctor PATH`: what may go wrong with a lace and the machine under it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.commands.key import ring_names, user_ring
from lace.cli.options.arguments import lace_argument, opened
from lace.cli.output.failure import ExitCode
from lace.cli.output.output import BAD, GOOD, NOTE, json_option, print_json, say_tree, say_verdict
from lace.cli.output.words import count_of

if TYPE_CHECKING:
    from lace.porcelain.doctor import CheckUp

MARKS = {"note": NOTE, "mend": BAD}


@click.command("doctor")
@lace_argument
@click.option(
    "--cert",
    "certificates",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="Also look at this certificate; repeatable.",
)
@json_option
def command(path: Path, certificates: tuple[Path, ...], as_json: bool) -> ExitCode:
    """Look for what may go wrong with a lace and the machine under it.

    Checks permissions, schema, free space, clock, remotes and whether they went by the policy, content without parts,
    keys without a backup, certificates and the Python that runs this. Nothing is changed and nobody is dialled: `lace
    status` compares with peers, and `lace verify` reads every record. The exit code is 1 if something has to be mended.
    """
    found = list(_findings(path, certificates))
    if as_json:
        for one in found:
            print_json(one.to_json())
    else:
        _print(found)
    return ExitCode.BAD if any(one.level == "mend" for one in found) else ExitCode.OK


def _findings(path: Path, certificates: Iterable[Path]) -> Iterator[CheckUp]:
    from lace.porcelain.doctor import checked_safely, examine, examine_certificate, examine_machine, seconds_now
    from lace.runtime.clock import SystemClock
    from lace.transports.certificate import certificate_end

    keys, ring = ring_names(), user_ring()
    backed_up = {name for name in keys.values() if ring.has_backup(name)}
    with opened(path) as lace:
        yield from checked_safely(examine(lace, path, keys, backed_up, SystemClock().tai()), "lace")
    for file in certificates:
        yield examine_certificate(file, certificate_end(file), seconds_now())
    yield from examine_machine()


def _print(found: Sequence[CheckUp]) -> None:
    """The verdict, what is worth reading, and the names of all that is well in one line."""
    mend = [one for one in found if one.level == "mend"]
    notes = [one for one in found if one.level == "note"]
    said = f"{count_of(len(mend), 'thing')} to mend" if mend else "nothing to mend"
    if notes:
        said += f", {count_of(len(notes), 'note')}"
    say_verdict(BAD if mend else GOOD, said)
    for one in (*mend, *notes):
        mark = MARKS[one.level]
        say_tree(f"{mark} {one.check}: {one.said}", mark)
        if one.advice:
            say_tree(f"    → {one.advice}")
    well = [one.check for one in found if one.level == "ok"]
    if well:
        say_tree(f"{GOOD} well: {', '.join(dict.fromkeys(well))}", GOOD)
