"""Files as records (082): the Name of a path, and the headers that say what a content alone does not.

Rule: pure and reversible: a path has one Name, and a Name has at most one path. A path is a sequence of parts in bytes,
as file systems keep them; what no path spells is refused with its reason, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from unicodedata import is_normalized

from lace.errors import InvalidText, excerpt
from lace.limits import SECOND_NS
from lace.records.link import parse_link
from lace.records.model import Header
from lace.values import dataclass

KIND = "File-Kind"
MODE = "File-Mode"
TIME = "File-Time"
BASE = "Base+Link"
FIRST = "File-Base"  # its value is `none`
EXECUTABLE = "executable"

_ESCAPED = re.compile(r"\^[0-9A-F]{2}")
_LITERAL_MARK = re.compile(r"\^(?=[0-9A-F]{2}|$)")  # 082-NAME-03: where it would be read as an escape
_BYTE = re.compile(r"[\udc80-\udcff]")  # a byte that is not UTF-8, as `surrogateescape` decodes it
_FORBIDDEN = re.compile(r"[{}|\x00-\x1f\x7f]")
_PART_OF_CONTENT = re.compile(r"[0-9]+\.\.[0-9]+")  # NAME/chunks/0..9 is a part of the content of NAME
_PLAIN_NAME = re.compile(r"[^^/.][^^/]*(?:/[^^/.][^^/]*)*")
_TIME = re.compile(r"(-?[0-9]{1,12})\.([0-9]{9})")
MAX_SEGMENT_BYTES = 128  # P27


class FileKind(StrEnum):
    """What a record with a path is."""

    FILE = "file"
    LINK = "link"  # its content is where the link leads
    FOLDER = "folder"  # an empty one; a folder that holds something is known by what it holds


@dataclass(frozen=True, slots=True)
class Attributes:
    """What the headers of a file's record say."""

    kind: FileKind = FileKind.FILE
    executable: bool = False
    time_ns: int | None = None  # of the last change, unix time

    def headers(self) -> tuple[Header, ...]:
        """The headers that say so, in canonical order; none for a plain file without a time."""
        found: list[Header] = []
        if self.kind is not FileKind.FILE:
            found.append((KIND, self.kind.value))
        if self.executable:
            found.append((MODE, EXECUTABLE))
        if self.time_ns is not None:
            seconds, rest = divmod(self.time_ns, SECOND_NS)
            found.append((TIME, f"{seconds}.{rest:09d}"))
        return tuple(found)

    def means_same(self, other: Attributes) -> bool:
        """Whether two versions differ in nothing but their time (082-ATTR-05)."""
        return (self.kind, self.executable) == (other.kind, other.executable)


def read_attributes(headers: Iterable[Header]) -> Attributes:
    """What headers say of a file; a value that 082 does not know is a plain file's (082-ATTR-04)."""
    kind, executable, time_ns = FileKind.FILE, False, None
    for name, value in headers:
        if name == KIND and value in tuple(FileKind):
            kind = FileKind(value)
        elif name == MODE:
            executable = value == EXECUTABLE
        elif name == TIME and (found := _TIME.fullmatch(value)):
            time_ns = int(found[1]) * SECOND_NS + int(found[2])
    return Attributes(kind, executable and kind is FileKind.FILE, time_ns)


def base_headers(versions: Iterable[str]) -> tuple[Header, ...]:
    """The headers by which a version names those whose place it takes, or says that there are none (082-BASE-01)."""
    return tuple((BASE, f"version {version}") for version in versions) or ((FIRST, "none"),)


def bases_of(headers: Iterable[Header]) -> tuple[str, ...] | None:
    """The versions whose place a version takes; None if it says nothing."""
    found, says = [], False
    for name, value in headers:
        if name == BASE and (link := parse_link(name, value)) is not None and link.data == "version":
            found.append(link.target)
        says = says or (name, value) == (FIRST, "none")
    return tuple(found) if found or says else None


def name_of(path: Sequence[bytes]) -> str:
    """The relative Name of a path.

    >>> name_of([b"notes", b"a{b}.txt"]), name_of([b"caf\\xe9"])
    ('notes/a^7Bb^7D.txt', 'caf^E9')
    """
    whole = b"/".join(path)
    if len(whole) <= MAX_SEGMENT_BYTES and whole.isascii() and whole.count(b"/") == len(path) - 1:
        text = whole.decode()
        if ".." not in text and _FORBIDDEN.search(text) is None and _PLAIN_NAME.fullmatch(text):
            return text
    return "/".join(map(_escaped_part, path))


def _escaped_part(part: bytes) -> str:
    if part in (b"", b".", b"..") or b"/" in part or b"\0" in part:
        raise InvalidText("a part of a path is a name", rule="file-path", found=excerpt(repr(part)))
    if part.isascii():
        text = part.decode()
        if "^" not in text and _FORBIDDEN.search(text) is None and len(part) <= MAX_SEGMENT_BYTES:
            return text if _PART_OF_CONTENT.fullmatch(text) is None else _spelled(part[:1]) + text[1:]  # 082-NAME-05
    text = _LITERAL_MARK.sub("^5E", part.decode("utf-8", "surrogateescape"))
    text = _FORBIDDEN.sub(lambda found: _spelled(found[0].encode()), text)
    out = text
    if not (is_normalized("NFC", text) and _BYTE.search(text) is None):
        out = ""
        for character in text:  # 082-NAME-04: whatever would make the text so far other than NFC
            is_spelled = _BYTE.match(character) or not is_normalized("NFC", out + character)
            out += _spelled(character.encode("utf-8", "surrogateescape")) if is_spelled else character
    return out if len(out.encode()) <= MAX_SEGMENT_BYTES else _in_pieces(out)


def _spelled(data: bytes) -> str:
    return "".join(f"^{byte:02X}" for byte in data)


def _in_pieces(text: str) -> str:
    """A long part as several segments: all but the last end with the mark (082-NAME-06)."""
    pieces, piece, size = [], "", 0
    for token in re.findall(r"\^[0-9A-F]{2}|.", text, re.DOTALL):
        length = len(token.encode())
        if size + length > MAX_SEGMENT_BYTES - 1:
            pieces.append(piece + "^")
            piece, size = "", 0
        piece += token
        size += length
    if piece in (".", ".."):
        piece = _spelled(b".") + piece[1:]
    return "/".join([*pieces, piece])


def path_of(name: str) -> tuple[bytes, ...]:
    """The path that a relative Name spells; InvalidText if none does (082-NAME-07).

    >>> path_of("notes/a^7Bb^7D.txt")
    (b'notes', b'a{b}.txt')
    """
    if ".." not in name and _PLAIN_NAME.fullmatch(name) and len(name.encode()) <= MAX_SEGMENT_BYTES:
        return tuple(name.encode().split(b"/"))
    parts: list[bytes] = []
    waiting = ""
    for segment in name.split("/"):
        waiting += segment
        if segment.endswith("^"):
            waiting = waiting[:-1]
            continue
        parts.append(_bytes_of(waiting))
        waiting = ""
    try:
        is_canonical = not waiting and name_of(parts) == name
    except InvalidText:
        is_canonical = False
    if not is_canonical:
        raise InvalidText("no path of a file is spelled like this", rule="file-name", found=excerpt(name))
    return tuple(parts)


def _bytes_of(text: str) -> bytes:
    out, at = b"", 0
    for found in _ESCAPED.finditer(text):
        out += text[at : found.start()].encode() + bytes([int(found[0][1:], 16)])
        at = found.end()
    return out + text[at:].encode()


def leads_inside(path: Sequence[bytes], target: bytes) -> bool:
    """Whether a link at a path leads nowhere outside its folder, by its text alone (082-LINK-02).

    `..` counts up from the folder that the link is in, which is a real one. After a name it would count up from where
    that name leads, and the name may be another link.
    """
    if not target or target.startswith(b"/") or b"\0" in target:
        return False
    depth = len(path) - 1
    is_below = False
    for step in target.split(b"/"):
        if step == b"..":
            depth -= 1
            if is_below or depth < 0:
                return False
        elif step not in (b"", b"."):
            is_below = True
    return True
