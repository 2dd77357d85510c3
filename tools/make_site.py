"""Make the documentation as a site: static pages in site-out that need no network, no server and no theme of others.

usage: python tools/make_site.py [--out FOLDER] [--playground FOLDER] [--serve]

With a playground (`make playground`) the site has it, and its rule blocks have Run and Why?, which need a web server:
a browser starts no program from file://. Without one, or from file://, the same blocks are text.

Rule: what a code host shows for docs/*.md is what the site shows. Headings have the anchors that code hosts give them,
links go to the same places, and the search index is a script, so that all of it works from file:// too. The order of
the pages is docs/nav.toml; the look is tools/site_look and the palette of the inspector.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from pathlib import Path

from check_docs import slug
from code_blocks import highlighted
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LOOK = Path(__file__).resolve().parent / "site_look"
STATIC = ROOT / "src/lace/inspector/static"
COPIED = {".svg", ".png", ".csv"}
LEFT_OUT = ("decisions/", "benchmarks/", "api.md")  # of the search
WORDS = re.compile(r"<!-- search: (.*?) -->\n*", re.DOTALL)  # what people call a page that does not call itself that
FACTS = re.compile(r"<!-- facts\n(.*?)-->\s*", re.DOTALL)  # before a rule block: what Run asks it over
PLAYGROUND = "playground"  # where it is in the site
DEPTH_OF_CONTENTS = 3
MAX_ENTRY = 6_000  # characters of a section that the search reads


class SiteError(Exception):
    """Something in docs/ that cannot be shown as it is written."""


@dataclass(slots=True)
class Heading:
    """A heading of a page, and the text below it."""

    level: int
    anchor: str
    title: str
    text: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Page:
    """One page: where it comes from, what it says, and how the search calls it."""

    source: str  # relative to docs/
    title: str = ""
    summary: str = ""
    words: str = ""  # further words for the search
    html: str = ""
    headings: list[Heading] = field(default_factory=list)

    @property
    def address(self) -> str:
        return re.sub(r"(^|/)README\.html$", r"\1index.html", self.source.removesuffix(".md") + ".html")

    @property
    def root(self) -> str:
        """The way from this page to the top of the site."""
        return "../" * self.source.count("/")


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the site: its groups of pages, and how much a find there counts."""

    title: str
    weight: float
    groups: dict[str, list[str]]

    @property
    def sources(self) -> list[str]:
        return [source for group in self.groups.values() for source in group]


def sections() -> list[Section]:
    """The parts of the site, from docs/nav.toml."""
    nav = tomllib.loads((DOCS / "nav.toml").read_text(encoding="utf-8"))
    return [Section(part["title"], part["weight"], part["groups"]) for part in nav["section"]]


def read_pages() -> dict[str, Page]:
    """Every page below docs/, rendered, by its source."""
    pages = {}
    for path in sorted(DOCS.rglob("*.md")):
        page = Page(path.relative_to(DOCS).as_posix())
        _Reader(page, path.read_text(encoding="utf-8")).read()
        pages[page.source] = page
    return pages


class _Reader:
    """Turns the text of a page into HTML and notes what is needed around it."""

    def __init__(self, page: Page, text: str) -> None:
        self._page = page
        found = WORDS.search(text)
        page.words = " ".join(found[1].split()) if found else ""
        self._text = WORDS.sub("", text)
        self._markdown = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
        self._seen: dict[str, int] = {}

    def read(self) -> None:
        page = self._page
        tokens = self._markdown.parse(self._text)
        for number, token in enumerate(tokens):
            if token.type == "heading_open":
                self._head(token, tokens[number + 1])
            elif token.type == "inline":
                self._inline(token)
                if page.headings:
                    page.headings[-1].text.append(_plain(token))
            elif token.type == "fence" and page.headings:
                page.headings[-1].text.append(token.content)
        page.html = self._rendered(tokens)
        if not page.title:
            raise SiteError(f"docs/{page.source} has no heading of level 1")
        paragraphs = (_plain(inner) for opening, inner in pairwise(tokens) if opening.type == "paragraph_open")
        page.summary = next((text for text in paragraphs if len(text) > 40), page.title)

    def _head(self, opening: Token, inline: Token) -> None:
        title, level = _plain(inline), int(opening.tag[1])
        anchor = slug(inline.content)
        self._seen[anchor] = again = self._seen.get(anchor, -1) + 1
        anchor = f"{anchor}-{again}" if again else anchor
        opening.attrSet("id", anchor)
        if level == 1 and not self._page.title:
            self._page.title = title
        elif level > 1 and inline.children is not None:
            link = Token("html_inline", "", 0)
            link.content = f'<a class="here" href="#{anchor}" aria-label="Link to {escape(title)}">#</a>'
            inline.children.append(link)
        self._page.headings.append(Heading(level, anchor, title))

    def _inline(self, token: Token) -> None:
        """Links to pages lead to pages; links to files outside of docs/ become their text."""
        kept: list[Token] = []
        outside = 0
        for child in token.children or ():
            if child.type == "link_open":
                target = self._target(str(child.attrGet("href")))
                if target is None:
                    outside += 1
                    continue
                child.attrSet("href", target)
            elif child.type == "link_close" and outside:
                outside -= 1
                continue
            kept.append(child)
        token.children = kept

    def _target(self, href: str) -> str | None:
        path, hash_, anchor = href.partition("#")
        if re.match(r"[a-z]+:", href) or not path:
            return href
        there = (DOCS / self._page.source).parent / path
        if not there.resolve().is_relative_to(DOCS):
            return None
        if there.suffix == ".md":
            path = re.sub(r"(^|/)README\.html$", r"\1index.html", path.removesuffix(".md") + ".html")
        elif there.suffix not in COPIED:
            return None
        return path + hash_ + anchor

    def _rendered(self, tokens: Sequence[Token]) -> str:
        renderer = self._markdown.renderer
        renderer.rules["fence"] = lambda all_tokens, number, *_: highlighted(  # type: ignore[assignment]
            all_tokens[number].info.strip(), all_tokens[number].content, _facts_before(all_tokens, number)
        )
        renderer.rules["table_open"] = lambda *_: '<div class="table"><table>\n'  # type: ignore[assignment]
        renderer.rules["table_close"] = lambda *_: "</table></div>\n"  # type: ignore[assignment]
        html = str(renderer.render(tokens, self._markdown.options, {}))
        return re.sub(r"<th( [^>]*)?></th>", r"<td\1></td>", html)  # a column without a name has no header to read out


def _facts_before(tokens: Sequence[Token], number: int) -> str:
    """The fact lines that a comment right before a block gives it; empty without such a comment."""
    before = tokens[number - 1] if number else None
    found = FACTS.fullmatch(before.content) if before is not None and before.type == "html_block" else None
    return found[1] if found else ""


def _plain(inline: Token) -> str:
    """The words of a line without their markup."""
    parts = [
        " " if child.type == "softbreak" else child.content
        for child in inline.children or ()
        if child.type not in {"html_inline", "image"}
    ]
    return " ".join("".join(parts).split())


class Site:
    """All pages and the frame around each of them."""

    def __init__(self, *, has_playground: bool = False) -> None:
        self.pages, self.sections = read_pages(), sections()
        self._playground = f' data-playground="{PLAYGROUND}"' if has_playground else ""
        listed = ["index.md", *(source for section in self.sections for source in section.sources)]
        for source in listed:
            if source not in self.pages:
                raise SiteError(f"docs/nav.toml names {source}, which does not exist")
        self._order = listed

    def section_of(self, page: Page) -> Section | None:
        """Where a page is; one that the navigation does not list belongs to the page that lists it."""
        source = page.source
        for unlisted, lists in (("decisions/", "decisions/README.md"), ("benchmarks/", "benchmarks.md")):
            source = lists if source.startswith(unlisted) else source
        return next((section for section in self.sections if source in section.sources), None)

    def framed(self, page: Page) -> str:
        """A page as a file."""
        section, landing = self.section_of(page), page.source == "index.md"
        title = "Lace: sync signed records by rules" if landing else f"{page.title} · Lace"
        body = page.html if landing else f"<article>\n{page.html}{self._onward(page)}</article>"
        return FRAME.format(
            root=page.root,
            playground=self._playground,
            title=escape(title),
            summary=escape(page.summary[:200], quote=True),
            kind="landing" if landing else "page",
            tabs="".join(self._tab(one, page, one is section) for one in self.sections),
            pages=self._navigation(page, section),
            body=body,
            contents="" if landing else _contents(page),
        )

    def _tab(self, section: Section, page: Page, here: bool) -> str:
        first = self.pages[section.sources[0]]
        current = ' aria-current="true"' if here else ""
        return f'<li><a href="{page.root}{first.address}"{current}>{escape(section.title)}</a></li>'

    def _navigation(self, page: Page, here: Section | None) -> str:
        parts = []
        for section in self.sections:
            parts.append(f'<div class="part{" current" if section is here else ""}"><h2>{escape(section.title)}</h2>')
            for group, sources in section.groups.items():
                parts.append(f"<h3>{escape(group)}</h3>" if group else "")
                parts.append("<ul>")
                for source in sources:
                    one = self.pages[source]
                    current = ' aria-current="page"' if one is page else ""
                    parts.append(f'<li><a href="{page.root}{one.address}"{current}>{escape(one.title)}</a></li>')
                parts.append("</ul>")
            parts.append("</div>")
        return "".join(parts)

    def _onward(self, page: Page) -> str:
        """The pages before and after this one."""
        if page.source not in self._order:
            return ""
        number = self._order.index(page.source)
        links = []
        for step, name, arrow in ((-1, "previous", "←"), (1, "next", "→")):
            if 0 < number + step < len(self._order):
                other = self.pages[self._order[number + step]]
                words = f"{arrow} {escape(other.title)}" if step < 0 else f"{escape(other.title)} {arrow}"
                links.append(f'<a rel="{name[:4]}" class="{name}" href="{page.root}{other.address}">{words}</a>')
        return f'<nav class="onward" aria-label="Previous and next page">{"".join(links)}</nav>\n'

    def index(self) -> str:
        """What the search knows: pages, and of each page its sections."""
        pages, entries = [], []
        for source in sorted(self.pages):
            page, section = self.pages[source], self.section_of(self.pages[source])
            if source.startswith(LEFT_OUT) or section is None:
                continue
            weight = section.weight * (0.6 if source.startswith("spec/") or source == "cli.md" else 1)
            pages.append([page.address, page.title, section.title, page.words.lower(), round(weight, 2)])
            for heading in page.headings:
                text = " ".join(" ".join(heading.text).split())[:MAX_ENTRY]
                anchor = "" if heading.level == 1 else heading.anchor
                entries.append([len(pages) - 1, anchor, "" if heading.level == 1 else heading.title, text])
        return "window.laceSearch=" + json.dumps({"pages": pages, "entries": entries}, ensure_ascii=False) + ";\n"

    def for_machines(self) -> str:
        """llms.txt: every page of the navigation with one line about it, as Markdown beside the page."""
        lines = ["# Lace", "", f"> {self.pages['index.md'].summary}", ""]
        for section in self.sections:
            lines += [f"## {section.title}", ""]
            lines += [
                f"- [{self.pages[source].title}]({source}): {_first_sentence(self.pages[source].summary)}"
                for source in section.sources
            ]
            lines.append("")
        return "\n".join(lines).rstrip() + "\n"


def _contents(page: Page) -> str:
    """The headings of a page, beside it."""
    shown = [heading for heading in page.headings if 1 < heading.level <= DEPTH_OF_CONTENTS]
    if len(shown) < 2:
        return ""
    if len(shown) > 40:
        shown = [heading for heading in shown if heading.level == 2]
    items = "".join(
        f'<li class="level-{one.level}"><a href="#{one.anchor}">{escape(one.title)}</a></li>' for one in shown
    )
    return f'<nav class="contents" aria-label="On this page"><h2>On this page</h2><ul>{items}</ul></nav>'


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.:])\s", text, maxsplit=1)[0].rstrip(":")


def palette() -> str:
    """The colours and typefaces of the inspector: what its style sheet says before anything is styled."""
    text = (STATIC / "lace.css").read_text(encoding="utf-8")
    variables, layer, _ = text.partition("@layer lace {")
    if not layer or "--accent:" not in variables or "prefers-color-scheme: dark" not in variables:
        raise SiteError("the inspector's style sheet does not begin with its palette, light and dark")
    return variables


FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="{summary}">
<title>{title}</title>
<link rel="icon" href="{root}look/icon.svg">
<link rel="stylesheet" href="{root}look/site.css">
<script src="{root}look/site.js" defer></script>
</head>
<body class="{kind}" data-root="{root}"{playground}>
<a href="#main" class="skip">Skip to the content</a>
<header class="banner">
<a href="{root}index.html" class="brand">Lace</a>
<nav class="tabs" aria-label="Sections"><ul>{tabs}</ul></nav>
<div class="finding" role="search">
<input type="search" id="find" placeholder="Search (press /)" aria-label="Search the documentation"
autocomplete="off" hidden>
<div id="found" class="found" hidden><p id="found-count" role="status"></p><ol></ol></div>
</div>
<a href="#pages" class="menu">All pages</a>
</header>
<div class="frame">
<nav id="pages" class="pages" aria-label="Pages"><a href="#main" class="close">Close</a>{pages}</nav>
<main id="main" tabindex="-1">
{body}</main>
{contents}
</div>
<footer><p>Lace, Apache-2.0. Nothing on this site is loaded from elsewhere.
<a href="{root}llms.txt">llms.txt</a></p></footer>
</body>
</html>
"""


def broken(out: Path) -> Iterator[str]:
    """Links and pictures of the finished site that lead nowhere, anchors included."""
    files = {path: path.read_text(encoding="utf-8") for path in sorted(out.rglob("*.html"))}
    ids = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in files.items()}
    for path, text in files.items():
        for link in re.findall(r'<(?:a|img|link|script|iframe)\b[^>]*?\b(?:href|src)="([^"]+)"', text):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            if not target.exists():
                yield f"{path.relative_to(out)}: {link} does not exist"
            elif anchor and target in ids and anchor not in ids[target]:
                yield f"{path.relative_to(out)}: {link} names no place on that page"


def build(out: Path, playground: Path | None = None) -> Site:
    """Write the site into a folder, and a built playground into it; SiteError if something leads nowhere."""
    out = out.resolve()
    site = Site(has_playground=playground is not None)
    shutil.rmtree(out, ignore_errors=True)
    (out / "look").mkdir(parents=True)
    for page in site.pages.values():
        target = out / page.address
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(site.framed(page), encoding="utf-8")
    for path in DOCS.rglob("*"):
        if path.suffix in COPIED or (path.suffix == ".md" and not path.match("decisions/[0-9]*")):
            there = out / path.relative_to(DOCS)
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, there)
    (out / "look/site.css").write_text(palette() + (LOOK / "site.css").read_text(encoding="utf-8"), encoding="utf-8")
    shutil.copyfile(LOOK / "site.js", out / "look/site.js")
    shutil.copyfile(STATIC / "icon.svg", out / "look/icon.svg")
    (out / "look/index.js").write_text(site.index(), encoding="utf-8")
    (out / "llms.txt").write_text(site.for_machines(), encoding="utf-8")
    problems = list(broken(out))
    if problems:
        raise SiteError("\n".join(problems))
    if playground is not None:
        shutil.copytree(playground, out / PLAYGROUND)
    return site


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=ROOT / "site-out")
    parser.add_argument("--playground", type=Path, help="the folder that `make playground` made; goes into the site")
    parser.add_argument("--serve", action="store_true", help="serve the site on this machine and say where")
    chosen = parser.parse_args()
    if chosen.playground is not None and not (chosen.playground / "docs.mjs").exists():
        print(f"{chosen.playground}: there is no playground here; `make playground` makes one", file=sys.stderr)
        return 1
    try:
        site = build(chosen.out, chosen.playground)
    except SiteError as why:
        print(why, file=sys.stderr)
        return 1
    print(f"{len(site.pages)} pages: open {chosen.out / 'index.html'}")
    if chosen.serve:
        from playground_server import serve

        serve(chosen.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
