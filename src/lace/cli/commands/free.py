"""`lace free PATH PLACE --from PEER`: give back the space of content that others hold."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import click

from lace.cli.options.arguments import lace_argument, opened
from lace.cli.options.links import link_options, make_terms
from lace.cli.options.peerchoices import PeerType
from lace.cli.options.remotes import dialled
from lace.cli.output.output import json_option, print_json, say
from lace.cli.output.words import count_of, human_size
from lace.errors import InvalidInput


@click.command("free")
@lace_argument
@click.argument("place", metavar="PLACE")
@click.option(
    "--from", "sources", type=PeerType(), multiple=True, required=True, metavar="PEER",
    help="Who must have it: an address, a remote or another lace; of several, each of them.",
)  # fmt: skip
@click.option(
    "--keep", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Rule file that derives Keep(P) for versions whose content stays.",
)  # fmt: skip
@click.option("--apply/--dry-run", default=False, help="Do it, or only say what would go (the default).")
@link_options
@json_option
def command(
    path: Path, place: str, sources: tuple[Any, ...], keep: Path | None, apply: bool, as_json: bool, **links: Any
) -> None:
    """Remove content that a peer has too; its files stay in sight.

    PLACE is //group//app or what is below a name, //group//app//photos. Every PEER is asked now; only what each of them
    says that it has goes, and only content in parts, which is what is longer than a record holds by itself. A peer that
    turns out to be PATH itself stops it. Versions stay, so `lace mount` shows the same files and fetches their content
    when they are opened. An exchange that selects whole content brings it back. The bytes leave the file with
    `lace compact`.
    """
    from lace.folder.setup import parse_place
    from lace.porcelain.freeing import free, freeable
    from lace.porcelain.keeping import kept_by

    at = parse_place(place)
    with opened(path, write=apply) as lace:

        def ask() -> list[Collection[str]]:
            return [_held(path, source, links) for source in sources]

        kept = kept_by(lace, keep.read_text(encoding="utf-8"), str(keep)) if keep is not None else set[str]()
        found = freeable(lace, (at.group, at.app, f"{at.name}/" if at.name else ""), ask(), kept)
        if apply:
            free(lace, found, ask)
    if as_json:
        print_json(
            {"parts": len(found.parts), "bytes": found.bytes, "versions": found.versions, "kept": found.kept,
             "not_elsewhere": found.elsewhere, "applied": apply}
        )  # fmt: skip
        return
    size, files = human_size(found.bytes), count_of(found.versions, "version")
    say(f"{'freed' if apply else 'would free'} {size} of {files} ({count_of(len(found.parts), 'part')})")
    if found.kept:
        say(
            f"{count_of(found.kept, 'part')} stay: a rule keeps them, or something outside {place} needs them", err=True
        )
    if found.elsewhere:
        say(f"{count_of(found.elsewhere, 'part')} stay: not every peer says that it has them", err=True)
    if found.parts:
        say("`lace compact` shortens the file" if apply else "nothing was removed: --apply does it", err=True)


def _held(path: Path, source: Any, links: dict[str, Any]) -> Collection[str]:
    """The parts that a peer has."""
    place = getattr(source, "place", source)
    if isinstance(place, Path):
        if place.exists() and place.samefile(path):
            message = f"{place} is the lace to free, so it holds nothing in its place"
            raise InvalidInput(message, rule="free-itself", found=str(place))
        with opened(place) as other:
            return {record for _, record in other.store.records_since() if record.type == "B"}
    from lace.cli.exchange.preview import ask
    from lace.policy.select import select_all
    from lace.runtime.local.preview import Preview
    from lace.store.memory import MemoryStore

    address, choices = dialled(source, links)
    preview = Preview()
    ask(MemoryStore(), address, make_terms(select_all(), (), is_open=False), choices, preview)
    return {claim.hash for claim in preview.offered}
