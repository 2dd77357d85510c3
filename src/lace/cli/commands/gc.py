"""`lace gc PATH --keep RULES`: remove what no rule keeps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.options.arguments import Target, lace_argument, opened
from lace.cli.output.output import json_option, print_fields, print_json, say
from lace.cli.output.tables import print_table
from lace.cli.output.words import count_of

if TYPE_CHECKING:
    from lace.porcelain.keeping import LaceDecision


@click.command("gc")
@lace_argument
@click.option(
    "--keep", required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Rule file that derives Keep(P).",
)  # fmt: skip
@click.option("--apply/--dry-run", default=False, help="Do it, or only show what would go (the default).")
@click.option("--all", "show_all", is_flag=True, help="Show every record that would go, not the oldest alone.")
@click.option(
    "--why", multiple=True, type=Target(coordinates=False), metavar="HASH",
    help="Say what becomes of this record, and by which rules.",
)  # fmt: skip
@json_option
def command(path: Path, keep: Path, apply: bool, show_all: bool, why: Sequence[str], as_json: bool) -> None:
    """Remove what no rule keeps.

    The rules derive Keep(P) for what stays: the newest so many versions, what is young, a group, what kept records link
    to. Parts of kept content stay with it, and so do retractions of kept versions. Shows how many records each rule
    keeps and what would go; --apply removes it, as `lace rm` does: an exchange may bring it back, and the bytes leave
    the file with `lace compact`.
    """
    from lace.porcelain.keeping import collect, decide

    with opened(path, write=apply) as lace:
        asked = [lace.resolve(one) if len(one) < 45 else one for one in why]
        found = decide(lace, keep.read_text(encoding="utf-8"), name=str(keep))
        because = f"no rule of {keep} derives Keep for it"
        (_print_objects if as_json else _print_page)(found, asked, because, apply, show_all)
        if found.removed_rows and not apply:
            say("nothing was removed: --apply does it", err=True)
        if apply:
            removed = collect(lace, found)
            say(f"removed {count_of(removed, 'record')}", err=True)


def _print_objects(found: LaceDecision, asked: Sequence[str], because: str, apply: bool, show_all: bool) -> None:
    print_json({"kept": found.kept, "removed": found.removed_rows, "applied": apply})
    for rule in found.rules:
        print_json({"rule": rule.text, "place": rule.place, "keeps": rule.keeps})
    for fate in found.fates(asked):
        kept_by = [rule.place for rule in fate.kept_by]
        print_json({"asked": fate.hash, "here": fate.here, "kept_by": kept_by, "because": fate.because})
    for record, place, when in found.going() if show_all else found.first:
        print_json({"hash": record, "coordinate": place, "tai": when, "because": because})


def _print_page(found: LaceDecision, asked: Sequence[str], because: str, apply: bool, show_all: bool) -> None:
    print_fields([("kept", f"{found.kept:,}"), ("to remove", f"{found.removed_rows:,}"), ("because", because)])
    kept = [(f"{rule.keeps:,}", rule.place, rule.text) for rule in found.rules]
    print_table(["keeps", "place", "rule"], kept, right=frozenset({"keeps"}))
    if asked:
        told = []
        for fate in found.fates(asked):
            kept_by = ", ".join(rule.place for rule in fate.kept_by) or fate.because
            said = f"goes: {because}" if fate.here else "it is not here"
            told.append((fate.hash, f"stays: {kept_by}" if kept_by else said))
        print_table(["record", "what becomes of it"], told)
    if found.removed_rows:
        print_table(["of", "to remove"], [(place, f"{n:,}") for place, n in found.by_coordinate])
        print_table(["hash", "coordinate", "time"], found.going() if show_all else found.first)
