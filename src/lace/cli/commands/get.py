"""`lace get PATH HASH|COORDINATE`: the content of a record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lace.cli.commands.ls import writer_words
from lace.cli.exchange.remote import fetch, from_options
from lace.cli.options.arguments import Target, as_of_option, lace_argument, opened
from lace.cli.options.remotes import dialled
from lace.cli.output.files import output_to
from lace.cli.output.output import say
from lace.cli.output.progress import metered
from lace.errors import NotFound

if TYPE_CHECKING:
    from lace.notation.identifiers import RecordHash
    from lace.porcelain.lace import Lace


@click.command("get")
@lace_argument
@click.argument("target", type=Target(), metavar="HASH|COORDINATE")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file.")
@as_of_option
@from_options
def command(path: Path, target: str, output: Path | None, as_of: str | None, source: Any, **links: Any) -> None:
    """Write the content of a record to standard output or a file.

    A coordinate means its tip, the newest record (`lace help coordinates`); if several people have written there, a
    note on stderr says who and when. Content in chunks is joined as it is written; a file given by -o appears only once
    it is complete and checked. With --from, the record is first fetched from a peer into the lace.
    """
    from lace.records.coordinate import is_place

    with opened(path, write=source is not None) as lace:
        if source is not None:
            fetch(lace, *dialled(source, links), target)
        lace = lace.at(as_of) if as_of is not None else lace
        found = _resolve(lace, target, source, links)  # once: a coordinate may mean another record a moment later
        if is_place(target):
            for notice in lace.tip(target).notices(writer_words(lace)):
                say(f"note: {notice}", err=True)
        with (
            metered(f"reading {target}", lace.content_length(found), in_bytes=True) as meter,
            output_to(output) as sink,
        ):
            for piece in lace.content(found):
                sink.write(piece)
                meter.advance(len(piece))


def _resolve(lace: Lace, target: str, source: Any, links: dict[str, Any]) -> RecordHash:
    """The record that TARGET names; if the peer did not send it either, the error says why."""
    try:
        return lace.resolve(target)
    except NotFound as error:
        if source is not None:
            from lace.cli.exchange.preview import why_not_fetched

            error.add_note(why_not_fetched(lace, *dialled(source, links), target))
        raise
