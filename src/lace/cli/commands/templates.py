"""`lace rules list|new`: rule files to start from."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.options.groups import SummaryGroup
from lace.cli.output.output import json_option, print_json, say
from lace.cli.output.tables import print_table
from lace.errors import InvalidText, StoreError


@click.group("rules", cls=SummaryGroup)
def command() -> None:
    """List and write rule files to start from.

    A template is a selector, an exposure and test cases, with comments that say what each rule does.
    """


@command.command("list")
@json_option
def show(as_json: bool) -> None:
    """List the templates and the options that each needs."""
    from lace.porcelain.ruletemplates import templates

    found = templates()
    if as_json:
        for one in found:
            print_json({"name": one.name, "summary": one.summary, "wants": list(one.wants)})
        return
    rows = ([t.name, t.summary, ", ".join(t.wants)] for t in found)
    print_table(["template", "what it is for", "needs"], rows, drop=("needs",))


@command.command("new")
@click.argument("template")
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@click.option("--group", default="u", show_default=True, help="The group whose records it is about.")
@click.option("--app", default="notes", show_default=True, help="The app whose records it is about.")
@click.option(
    "--admin",
    metavar="KEY|V",
    default="",
    help="Who decides, if the template needs somebody to: a key of the ring, or a verifier.",
)
@click.option(
    "--count", type=click.IntRange(min=1), default=100, show_default=True, help="How many records count as the newest."
)
def new(template: str, folder: Path | None, group: str, app: str, admin: str, count: int) -> None:
    """Write the files of TEMPLATE into FOLDER (by default a folder with the template's name).

    select.lace is for --select, expose.lace for --expose, cases.toml for `lace test select.lace cases.toml`. Existing
    files are never overwritten.
    """
    from lace.cli.options.names import verifier_named
    from lace.porcelain.ruletemplates import fill

    words = {"group": group, "app": app, "admin": verifier_named(admin) if admin else "", "count": str(count)}
    try:
        files = fill(template, words)
    except InvalidText as error:
        error.add_note("name a key of yours or a verifier: --admin me, --admin V.….H3; `lace key list` shows yours")
        raise
    target = folder or Path(template)
    there = [name for name in files if (target / name).exists()]
    if there:
        raise StoreError(f"{target / there[0]} already exists; name another folder")
    target.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (target / name).write_text(text, encoding="utf-8")
        say(f"wrote {target / name}")
    say(f"try: lace test {target / 'select.lace'} {target / 'cases.toml'}")
