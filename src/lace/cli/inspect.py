"""`lace inspect PATH…`: look into laces from a browser."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from pathlib import Path

import click

from lace.cli.output import say


@click.command("inspect")
@click.argument("paths", type=click.Path(path_type=Path), nargs=-1, metavar="PATH…")
@click.option(
    "--node", default="", metavar="SOCKET", help="Also show a running node: what `lace serve --watch` was given."
)
@click.option("--write", is_flag=True, help="Let pages put and remove records; without it nothing can be changed.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="The port on 127.0.0.1; any free one by default."
)
@click.option("--no-open", is_flag=True, help="Print the address and do not open a browser.")
def command(paths: Sequence[Path], node: str, write: bool, port: int, no_open: bool) -> None:
    """Look into laces, archives and captured streams from a browser.

    A PATH is a lace, an archive that `lace pipeline` made, or a stream captured by --trace. Pages are served on this
    machine only, to whoever has the address with its token; each is JSON too with ?format=json. Ends on Ctrl-C.
    """
    if not paths and not node:
        raise click.UsageError("name a lace, an archive or a captured stream, or a running node with --node")
    try:
        from lace.inspector.opened import open_all
        from lace.inspector.serving import Inspector
    except ImportError as error:
        raise click.ClickException(f"{error}. The inspector needs: pip install 'lace-protocol[inspector]'") from error
    inspected = open_all(paths, node=node, write=write)
    try:
        inspector = Inspector(inspected, port)

        def tell() -> None:
            say(inspector.address)
            if not no_open:
                webbrowser.open(inspector.address)

        inspector.run(tell)
    finally:
        inspected.close()
