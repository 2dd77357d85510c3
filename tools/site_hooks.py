"""What mkdocs does differently here: links to files outside of docs/ become plain text, for the site has only docs/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """The text of a page as the site shows it."""
    folder = (DOCS / page.file.src_uri).parent

    def shown(found: re.Match[str]) -> str:
        target = found[2]
        if re.match(r"[a-z]+:", target):
            return found[0]
        inside = (folder / target).resolve().is_relative_to(DOCS) and target.endswith((".md", ".svg", ".png"))
        return found[0] if inside else found[1]

    return LINK.sub(shown, markdown)
