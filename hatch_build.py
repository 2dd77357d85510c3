"""What the wheel says of itself beyond pyproject.toml: a README whose links lead somewhere from wherever it is read.

Rule: `repository` in `tool.hatch.metadata.hooks.custom` is the address at which the sources can be browsed. With one,
relative links and pictures of the README become absolute ones to this version, and the address stands among the
project's URLs; without one they become their text, because a link that leads nowhere is worse than none.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]+)\]\((?!https?://|#|mailto:)([^)\s]+)\)")  # a picture begins with !
PAGES = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md"}


def standalone(text: str, repository: str, version: str) -> str:
    """A page of the sources, as it may be shown elsewhere."""
    base = repository.rstrip("/")

    def absolute(link: re.Match[str]) -> str:
        shown, form = link[1], "raw" if link[1] else "blob"
        return f"{shown}[{link[2]}]({base}/{form}/v{version}/{link[3]})" if repository else link[2]

    return LINK.sub(absolute, text)


def urls(repository: str) -> dict[str, str]:
    """The project's addresses; none if nobody said where it is."""
    base = repository.rstrip("/")
    pages = {name: f"{base}/blob/main/{path}" for name, path in PAGES.items()}
    return {"Source": base, **pages} if repository else {}


class ReadmeHook(MetadataHookInterface):
    """Called by hatchling when it makes the metadata of a wheel or an sdist."""

    def update(self, metadata: dict[str, Any]) -> None:
        repository = self.config.get("repository", "")
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        shown = standalone(text, repository, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": shown}
        if found := urls(repository):
            metadata["urls"] = found
