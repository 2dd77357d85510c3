"""Check the documentation: every link leads somewhere, and docs/cli.md is what `lace --help` says.

usage: python tools/check_docs.py [--write]     (--write: make docs/cli.md anew)
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

import click  # noqa: E402  (after the path is set, so that a plain checkout works)

CLI_PAGE = ROOT / "docs" / "cli.md"
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
ANCHOR = re.compile(r'<a id="([^"]+)"')
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """The Markdown pages of the project."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "demo").glob("*.md")])


def anchors(text: str) -> set[str]:
    """The places inside a page that a link can name, spelled as code hosts spell them."""
    plain = FENCE.sub("", text)
    return {*map(slug, HEADING.findall(plain)), *ANCHOR.findall(plain)}


def slug(heading: str) -> str:
    """The anchor of a heading, as code hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def broken_links() -> Iterator[str]:
    """`page: link` for every link into the project that leads nowhere."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for link in LINK.findall(FENCE.sub("", text)):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists():
                yield f"{page.relative_to(ROOT)}: {link} does not exist"
            elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text(encoding="utf-8")):
                yield f"{page.relative_to(ROOT)}: {link} names no heading"


def command_pages() -> Iterator[tuple[str, str]]:
    """("lace put", its help page) for every command and subcommand."""
    from lace.cli.app import app

    root = click.Context(app, info_name="lace", terminal_width=100, **app.context_settings)
    yield "lace", app.get_help(root)
    for name in app.list_commands(root):
        command = app.get_command(root, name)
        if command is None:
            raise SystemExit(f"lace {name} cannot be loaded")
        context = click.Context(command, info_name=name, parent=root)
        yield f"lace {name}", command.get_help(context)
        if isinstance(command, click.Group):
            for inner, subcommand in sorted(command.commands.items()):
                yield (
                    f"lace {name} {inner}",
                    subcommand.get_help(click.Context(subcommand, info_name=inner, parent=context)),
                )


def cli_page() -> str:
    """docs/cli.md as it should be."""
    from lace.cli.commands.help import TOPICS

    parts = [
        "# The `lace` command",
        "",
        "Made from `lace --help` by `python tools/check_docs.py --write`; do not edit.",
        "",
    ]
    for name, text in command_pages():
        parts += [f"## `{name}`", "", "```text", click.unstyle(text).rstrip(), "```", ""]
    for topic, (summary, body) in TOPICS.items():
        parts += [f"## {topic}", "", summary, "", "```text", body().rstrip(), "```", ""]
    return "\n".join(parts).rstrip() + "\n"


def main() -> int:
    os.environ.pop("COLUMNS", None)
    page = cli_page()
    if "--write" in sys.argv[1:]:
        CLI_PAGE.write_text(page, encoding="utf-8")
        print(f"wrote {CLI_PAGE.relative_to(ROOT)}")
    problems = list(broken_links())
    if not CLI_PAGE.exists() or CLI_PAGE.read_text(encoding="utf-8") != page:
        problems.append("docs/cli.md is not what `lace --help` says: run python tools/check_docs.py --write")
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print(f"{len(pages())} pages, all links lead somewhere, docs/cli.md is what `lace --help` says")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
