"""Base64-Ascend (006): base64 whose alphabet is in ASCII order, so that text order is byte order.

Rule: one text per byte string; everything else is refused.
"""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Sequence

from lace.errors import InvalidText

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~"  # 006-ALPHA-01

_RFC4648 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_TO_ASCEND = bytes.maketrans(_RFC4648, ALPHABET.encode())
_FROM_ASCEND = bytes.maketrans(ALPHABET.encode(), _RFC4648)
_SYMBOL = "[0-9A-Z_a-z~]"
# The last symbol of a text of length 2 or 3 mod 4 carries 4 or 2 filler bits that must be zero.
_LAST = {0: "", 1: "[0GWl]", 2: "[048CGKOSW_dhlptx]"}  # by the bytes behind the last three
PATTERN = f"(?:{_SYMBOL}{{4}})*+(?:{_SYMBOL}{{2}}{_LAST[2]}|{_SYMBOL}{_LAST[1]})?"  # canonical texts of any length
_CANONICAL = re.compile(PATTERN)
_OUTSIDE = re.compile(f"[^{_SYMBOL[1:]}")
_PADDING = (b"", b"===", b"==", b"=")


def text_length(size: int) -> int:
    """How many symbols `size` bytes take."""
    return (8 * size + 5) // 6


def pattern_of(size: int) -> str:
    """The canonical texts of `size` bytes."""
    return f"{_SYMBOL}{{{text_length(size) - bool(size % 3)}}}{_LAST[size % 3]}"


def encode(data: bytes) -> str:
    """Bytes as B64A text, without padding.

    >>> encode(bytes.fromhex("FF00"))
    '~l0'
    """
    return b2a_base64(data, newline=False).translate(_TO_ASCEND, b"=").decode("ascii")


def decode(text: str) -> bytes:
    """The bytes of a canonical B64A text.

    >>> decode("0042").hex()
    '000102'
    """
    if _CANONICAL.fullmatch(text) is None:
        raise _refusal(text)
    return decode_canonical(text)


def decode_canonical(text: str) -> bytes:
    """The bytes of a text that is known to be canonical."""
    return a2b_base64(text.encode("ascii").translate(_FROM_ASCEND) + _PADDING[len(text) & 3])


def decode_canonical_each(texts: Sequence[str], size: int) -> list[bytes]:
    """The `size` bytes of each of many texts that are known to be canonical, decoded together."""
    padding = "0" * (-text_length(size) % 4)  # zero bits behind each, so that the next begins at a whole byte
    data = a2b_base64(padding.join([*texts, ""]).encode("ascii").translate(_FROM_ASCEND))
    return [data[at : at + size] for at in range(0, len(data), (text_length(size) + 3) // 4 * 3)]


def _refusal(text: str) -> InvalidText:
    """Which rule a text breaks that is not canonical."""
    outside = _OUTSIDE.search(text)
    if outside is not None:  # 006-DEC-01, 006-DEC-02
        rule = "b64a-padding" if outside[0] == "=" else "b64a-alphabet"
        return InvalidText(f"B64A has no symbol {outside[0]!r}", rule=rule, place=f"symbol {outside.start()}")
    if len(text) % 4 == 1:  # 006-DEC-03
        return InvalidText("no B64A text has a length of 1 mod 4", rule="b64a-length", found=f"{len(text)} symbols")
    message = "the filler bits of the last B64A symbol must be zero"  # 006-DEC-04, 006-DEC-05
    return InvalidText(message, rule="b64a-filler", found=repr(text[-1]))


def is_canonical(text: str, size: int | None = None) -> bool:
    """Whether a text is canonical B64A, of `size` bytes if given; the cheap test for hot paths."""
    if size is not None and len(text) != text_length(size):
        return False
    return _CANONICAL.fullmatch(text) is not None
