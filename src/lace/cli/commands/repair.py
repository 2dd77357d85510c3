"""`lace repair PATH`: salvage a damaged lace."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.commands.forget import user_journal
from lace.cli.options.arguments import LacePath
from lace.cli.output.failure import ExitCode
from lace.cli.output.output import json_option, print_json, say
from lace.cli.output.progress import metered
from lace.cli.output.words import count_of


@click.command("repair")
@click.argument("path", metavar="PATH", type=LacePath(exists=True, dir_okay=False))
@json_option
def command(path: Path, as_json: bool) -> ExitCode:
    """Salvage everything readable from a damaged lace.

    Every record whose bytes still match its hash goes into a new lace with rebuilt facts and indexes, which replaces
    the old one. The damaged file stays beside it as PATH.damaged. First end all programs that have the lace open. Exits
    with 1 if anything is lost.
    """
    from lace.porcelain.upkeep import repair

    with metered(f"repairing {path}", None) as meter:
        report = repair(path, forgotten=user_journal().read(), progress=meter.advance)
    if as_json:
        for lost in report.lost:
            print_json({"lost": lost.hash, "number": lost.id, "finding": lost.reason})
        kept = {
            "kept": report.kept,
            "carved": report.carved,
            "forgotten": report.forgotten,
            "lost_records": len(report.lost),
        }
        settings = {"settings": report.settings, "settings_lost": report.lost_settings}
        print_json({**kept, **settings, "damaged": str(report.damaged_file)})
    else:
        for lost in report.lost:
            say(f"lost: record {lost.id} {lost.hash}: {lost.reason}")
        say(f"kept {count_of(report.kept, 'record')}; lost {len(report.lost):,}")
        if report.carved:
            say(f"found outside any table: {report.carved:,} of these; removed records may be among them")
        if report.forgotten:
            say(f"left out: {count_of(report.forgotten, 'record')} that you forgot")
        if report.lost_settings:
            say("its settings could not be read, among them the keys it knows: add those again with `lace key know`")
        say(f"the damaged file is {report.damaged_file}", err=True)
    return ExitCode.BAD if report.lost else ExitCode.OK
