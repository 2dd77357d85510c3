"""What `lace archive gc` says: what rules keep, what would go and why, which files of old versions nobody needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lace.cli.output.output import print_fields, print_json, say
from lace.cli.output.tables import print_table
from lace.cli.output.words import count_of

if TYPE_CHECKING:
    from lace.spark.archive.archive import Archive
    from lace.spark.archive.retention import Decision, Fate


def retain(archive: Archive, keep: Path, apply: bool, show_all: bool, asked: Sequence[str], as_json: bool) -> None:
    """Show what a rule file keeps and what not, and take that away if it is to be applied."""
    from lace.spark.archive.retention import decide

    found = decide(archive, keep.read_text(encoding="utf-8"), name=str(keep))
    why = f"no rule of {keep} derives Keep for it"
    (_print_objects if as_json else _print_page)(found, found.fates(asked), why, apply, show_all)
    if apply and found.removed_rows:
        archive.remove(found.removed, "gc")
    elif found.removed_rows:
        say("nothing was removed: --apply does it", err=True)


def _print_objects(found: Decision, fates: Sequence[Fate], why: str, apply: bool, show_all: bool) -> None:
    print_json({"kept": found.kept, "removed": found.removed_rows, "applied": apply})
    for rule in found.rules:
        print_json({"rule": rule.text, "place": rule.place, "keeps": rule.keeps})
    for fate in fates:
        print_json({"asked": fate.hash, "here": fate.here, "kept_by": [rule.place for rule in fate.kept_by]})
    for record, place, when in found.going() if show_all else found.first:
        print_json({"hash": record, "coordinate": place, "ts": when, "because": why})


def _print_page(found: Decision, fates: Sequence[Fate], why: str, apply: bool, show_all: bool) -> None:
    print_fields([("kept", f"{found.kept:,}"), ("to remove", f"{found.removed_rows:,}"), ("because", why)])
    say("")
    kept = [(f"{rule.keeps:,}", rule.place, rule.text) for rule in found.rules]
    print_table(["keeps", "place", "rule"], kept, right=frozenset({"keeps"}))
    if fates:
        say("")
        print_table(["record", "what becomes of it"], [(fate.hash, _told(fate, why)) for fate in fates])
    if found.removed_rows:
        say("")
        print_table(["of", "to remove"], [(place, f"{n:,}") for place, n in found.by_coordinate])
        say("\nall of them:" if show_all else "\nthe oldest of them:")
        print_table(["hash", "coordinate", "time"], found.going() if show_all else found.first)


def _told(fate: Fate, why: str) -> str:
    if not fate.here:
        return "it is not in this archive"
    return f"stays: {', '.join(rule.place for rule in fate.kept_by)}" if fate.kept_by else f"goes: {why}"


def vacuum(archive: Archive, versions: int, apply: bool, as_json: bool) -> None:
    """Show which files only older versions need, and delete them if that is to be applied."""
    from lace.spark.archive.rewrite import unreferenced

    gone, oldest = unreferenced(archive, archive.log.state(), versions)
    if as_json:
        print_json({"files": len(gone), "oldest_version": oldest, "applied": apply})
    else:
        only = f"that only versions before {oldest} need"
        say(f"{count_of(len(gone), 'file')} {only}" if gone else "no file that only older versions need")
    if apply:
        archive.vacuum(versions)
    elif gone:
        say("no file was removed: --apply does it", err=True)
