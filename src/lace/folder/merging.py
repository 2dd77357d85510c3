"""Two texts made from a third, merged line by line.

Rule: pure, and the same whoever merges: the two come in the order of their versions. Where both changed the same lines
differently there is no merge, and both versions are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from lace.folder.contested import KnownVersion

MAX_BYTES = 1 << 20  # of a text that is merged
MAX_LINES = 10_000


def merged(base: bytes, one: bytes, other: bytes) -> bytes | None:
    """The text with the changes of both; None if that is not a matter of course.

    >>> merged(b"a\\nb\\nc\\n", b"A\\nb\\nc\\n", b"a\\nb\\nC\\n")
    b'A\\nb\\nC\\n'
    >>> merged(b"a\\n", b"b\\n", b"c\\n") is None
    True
    """
    texts = (base, one, other)
    if any(len(text) > MAX_BYTES or not _is_text(text) for text in texts):
        return None
    lines, first, second = (text.splitlines(keepends=True) for text in texts)
    if max(len(lines), len(first), len(second)) > MAX_LINES:
        return None
    changes = sorted({*_changes(lines, first), *_changes(lines, second)})
    found, at = [], 0
    last: tuple[int, int] | None = None
    for start, end, new in changes:
        # Changes that touch are one place to people, so they are not merged.
        if last is not None and start <= last[1]:
            return None
        found += lines[at:start]
        found += new
        at, last = end, (start, end)
    return b"".join([*found, *lines[at:]])


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


def _changes(base: Sequence[bytes], changed: Sequence[bytes]) -> Iterable[tuple[int, int, tuple[bytes, ...]]]:
    matcher = SequenceMatcher(None, base, changed, autojunk=False)
    for tag, start, end, left, right in matcher.get_opcodes():
        if tag != "equal":
            yield start, end, tuple(changed[left:right])


def common_base(versions: Iterable[KnownVersion], one: str, other: str) -> KnownVersion | None:
    """The newest version that both were made from; None if none is known."""
    known = {version.hash: version for version in versions}
    both = _made_from(known, one) & _made_from(known, other)
    return max((known[found] for found in both), key=lambda version: (version.tai, version.hash), default=None)


def _made_from(known: dict[str, KnownVersion], version: str) -> set[str]:
    found: set[str] = set()
    waiting = [version]
    while waiting:
        at = known.get(waiting.pop())
        for base in (at.bases or ()) if at else ():
            if base in known and base not in found:
                found.add(base)
                waiting.append(base)
    return found
