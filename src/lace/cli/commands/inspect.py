"""`lace inspect PATH…`: look into laces with a browser."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.options.arguments import LacePath
from lace.cli.output.output import say
from lace.cli.output.words import human_size

if TYPE_CHECKING:
    from lace.inspector.inspected import Inspected


@click.command("inspect")
@click.argument("paths", type=LacePath(), nargs=-1, metavar="PATH…")
@click.option(
    "--node",
    default="",
    metavar="SOCKET",
    help="Also show a running node, by the socket given to `lace serve --watch`.",
)
@click.option("--write", is_flag=True, help="Let pages put and remove records; without it nothing can be changed.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="The port on 127.0.0.1; any free one by default."
)
@click.option(
    "--html", "html", type=click.Path(path_type=Path), metavar="OUT", help="Write one file instead of serving."
)
@click.option("--rules", metavar="RULES", help="With --html: explain a goal by a rule file, or by these rules.")
@click.option("--goal", metavar="GOAL", help="With --html and --rules: the fact to explain.")
@click.option("--no-open", is_flag=True, help="Print the address and do not open a browser.")
def command(
    paths: Sequence[Path],
    node: str,
    write: bool,
    port: int,
    html: Path | None,
    rules: str | None,
    goal: str | None,
    no_open: bool,
) -> None:
    """Look into laces, archives and captured streams from a browser.

    A PATH is a lace, an archive made by `lace pipeline`, or a stream captured by --trace. Pages are served on this
    machine only, to anybody who has the address with its token; ?format=json gives any page as JSON. Ends on Ctrl-C.

    With --html one self-contained file is written instead, to attach to a mail or an issue. It shows a lace, a captured
    exchange or, with --rules and --goal, an explanation.
    """
    if not paths and not node:
        raise click.UsageError("name a lace, an archive or a captured stream, or a running node with --node")
    from lace.inspector.inspected import open_all
    from lace.inspector.serving import Inspector

    if (rules is None) != (goal is None) or (rules is not None and html is None):
        raise click.UsageError("--rules and --goal must be given together, and with --html")
    inspected = open_all(paths, node=node, write=write)
    try:
        if html is not None:
            _export(inspected, html, rules, goal)
            return
        inspector = Inspector(inspected, port)

        def tell() -> None:
            say(inspector.address)
            if not no_open:
                webbrowser.open(inspector.address)

        inspector.run(tell)
    finally:
        inspected.close()


def _export(inspected: Inspected, out: Path, rules: str | None, goal: str | None) -> None:
    from lace.cli.options.rules import read_rules
    from lace.inspector.exporting import export_html

    text = read_rules(rules)[1] if rules is not None else ""
    page = export_html(inspected, rules=text, goal=goal or "")
    out.write_text(page, encoding="utf-8")
    say(f"wrote {out}, {human_size(len(page.encode()))}")
