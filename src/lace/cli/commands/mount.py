"""`lace mount PATH DIR [PEER]`: a lace as files that are fetched when they are opened."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from lace.cli.options.arguments import lace_argument, opened
from lace.cli.options.links import link_options
from lace.cli.options.peerchoices import PeerType
from lace.cli.output.output import print_warning, say
from lace.errors import InvalidInput, naming_extras


@click.command("mount")
@lace_argument
@click.argument("directory", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("address", metavar="[PEER]", required=False, type=PeerType())
@click.option("--at", metavar="PLACE", help="What to show: //group//app or //group//app//name.")
@click.option("-q", "--quiet", is_flag=True, help="Print only what could not be read.")
@link_options
def command(path: Path, directory: Path, address: Any, at: str | None, quiet: bool, **links: Any) -> None:
    """Show a lace as read-only files in a folder, and fetch content when a file is opened.

    With a PEER (an address, a remote, or another lace on this machine) everything that the peer has at PLACE is shown,
    with its size and time, while its content stays there; opening a file fetches what is not here. What was fetched
    stays in the lace; `lace free` gives the space back. `ls -s` and `du` show what is here. It ends with Ctrl-C,
    SIGTERM or `fusermount3 -u DIR`. Needs libfuse (Debian: apt install fuse3) and the extra `mount`.
    """
    from lace.folder.mounting import binding, mount
    from lace.folder.ondemand import OnDemand

    with naming_extras():
        binding()  # before anything is asked of a peer
    if path.resolve().is_relative_to(directory.resolve()):
        raise InvalidInput(f"{path} lies in {directory}, which the mounted files would hide", rule="mount-place")
    with ExitStack() as stack:
        lace = stack.enter_context(opened(path, write=address is not None))
        place = _place(lace, at)
        fetch = None
        if address is not None:
            from lace.cli.exchange.ondemand import opened_source, without_content

            source = stack.enter_context(opened_source(lace, address, links))
            source.pull(without_content(place))
            stack.enter_context(source.following(without_content(place)))
            fetch = source.fetch
        files = OnDemand(lace, place, fetch)
        if not quiet:
            say(f"{len(files.look().shown):,} files of {place} are in {directory} until this ends", err=True)
        mount(files, directory, print_warning, name=str(path))


def _place(lace: Any, at: str | None) -> Any:
    from itertools import groupby

    from lace.folder.lacetree import FolderPlace
    from lace.folder.setup import parse_place

    if at is not None:
        return parse_place(at)
    spaces = {space for space, _ in groupby(lace.store.entries(), lambda entry: (entry.group, entry.app))}
    if len(spaces) != 1:
        held = " and ".join(f"//{group}//{app}" for group, app in sorted(spaces)) or "no files"
        raise click.UsageError(f"say what to show with --at //group//app; this lace holds {held}")
    group, app = spaces.pop()
    return FolderPlace(group=group, app=app)
