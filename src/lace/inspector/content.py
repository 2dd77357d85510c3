"""A record's content as text, JSON, an image or bytes.

Rule: content comes from strangers. A page shows it as escaped text; served raw, it gets a type that cannot run, a
sandbox without origin, and `nosniff`. SVG and HTML are shown as text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from lace.errors import LaceError
from lace.inspector.html import Markup, join, tag
from lace.inspector.inspected import InspectorLimits
from lace.inspector.widgets import empty, link, notice, size
from lace.porcelain.difference import as_text
from lace.values import dataclass

IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_WEBP = (b"RIFF", b"WEBP")
VIEWS = ("text", "json", "image", "hex")
_PER_LINE = 16


@dataclass(frozen=True, slots=True)
class Content:
    """The first bytes of content, and its length."""

    head: bytes
    length: int
    trouble: str = ""  # why some of it could not be read

    @property
    def is_whole(self) -> bool:
        return len(self.head) == self.length

    @property
    def image_type(self) -> str | None:
        """The media type, if this is an image that browsers draw and that cannot contain a script."""
        for magic, kind in IMAGES.items():
            if self.head.startswith(magic):
                return kind
        return "image/webp" if (self.head[:4], self.head[8:12]) == _WEBP else None

    @property
    def text(self) -> str | None:
        """The beginning as text, if it is text."""
        return as_text(self.head, is_whole=self.is_whole)

    @property
    def parsed(self) -> str | None:
        """The content as indented JSON, if it is a JSON object or array."""
        text = self.text
        if not self.is_whole or text is None or text.lstrip()[:1] not in ("{", "["):
            return None
        try:
            return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
        except (ValueError, RecursionError):
            return None

    def views(self) -> list[str]:
        """The ways in which it can be shown, the best first."""
        found = [
            ("image", self.image_type is not None),
            ("json", self.parsed is not None),
            ("text", self.text is not None),
            ("hex", True),
        ]
        return [name for name, possible in found if possible]


def read_head(pieces: Iterable[memoryview], length: int, limit: int) -> Content:
    """The first bytes of content in pieces; at a missing piece it ends with the reason."""
    found = bytearray()
    try:
        for piece in pieces:
            found += piece[: limit - len(found)]
            if len(found) >= limit:
                break
    except LaceError as error:
        return Content(bytes(found), length, str(error))
    return Content(bytes(found), length)


def show_content(
    content: Content, wanted: str, limits: InspectorLimits, raw: str, address_of: Callable[[str], str]
) -> Markup:
    """The content under tabs for the ways to show it."""
    if not content.length:
        return empty("This record has no content.")
    views = content.views()
    view = wanted if wanted in views else views[0]
    tabs = [
        tag(
            "li",
            link(
                name.upper() if name == "json" else name.capitalize(),
                address_of(name) + "#content",
                aria_current="true" if name == view else None,
            ),
        )
        for name in VIEWS
        if name in views
    ]
    download = link(f"Download {size(content.length)}", raw, class_="button", download=True)
    bar = tag("div", tag("ul", tabs, class_="tabs"), download, class_="bar")
    trouble = notice("warning", content.trouble) if content.trouble else None
    return join(bar, trouble, _shown(content, view, limits, raw), _cut(content, view, limits))


def _shown(content: Content, view: str, limits: InspectorLimits, raw: str) -> Markup:
    if view == "image":
        alternative = "The image in this record"
        return tag("p", tag("img", src=raw, alt=alternative, loading="lazy", class_="content-image"))
    shown = {"json": content.parsed, "text": content.text}.get(view) or hex_dump(content.head[: limits.hex_bytes])
    return tag(
        "pre", tag("code", shown), class_="content", tabindex="0", role="region", aria_label=f"Content as {view}"
    )


def _cut(content: Content, view: str, limits: InspectorLimits) -> Markup | None:
    shown = min(len(content.head), limits.hex_bytes) if view == "hex" else len(content.head)
    if view == "image" or shown >= content.length:
        return None
    return tag("p", f"The first {size(shown)} of {size(content.length)}; the download has all of it.", class_="note")


def hex_dump(data: bytes) -> str:
    """Bytes as a hex dump, sixteen per line."""
    lines = []
    for start in range(0, len(data), _PER_LINE):
        part = data[start : start + _PER_LINE]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "·" for byte in part)
        lines.append(f"{start:08x}  {part[:8].hex(' '):<23}  {part[8:].hex(' '):<23}  {letters}")
    return "\n".join(lines)
