"""`lace doctor PATH`: what may go wrong with a lace and the machine under it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.commands.key import ring_names, user_ring
from lace.cli.options.arguments import lace_argument, opened
from lace.cli.output.failure import ExitCode
from lace.cli.output.output import json_option, print_json, say_hanging

if TYPE_CHECKING:
    from lace.porcelain.doctor import CheckUp

MARKS = {"ok": ("✓", "green"), "note": ("·", "yellow"), "mend": ("✗", "red")}


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

    Checks permissions, schema, free space, clock, remotes, content without parts, keys without a backup, certificates
    and the Python that runs this. Nothing is changed and nobody is dialled: `lace status` compares with peers, and
    `lace verify` reads every record. The exit code is 1 if something has to be mended.
    """
    found = list(_findings(path, certificates))
    for one in found:
        if as_json:
            print_json(one.to_json())
        else:
            _print(one)
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


def _print(one: CheckUp) -> None:
    mark, colour = MARKS[one.level]
    say_hanging(f"{mark} {one.check}: {one.said}", mark, fg=colour)
    if one.advice:
        say_hanging(f"    → {one.advice}")
