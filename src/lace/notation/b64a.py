"""Base64-Ascend (006): base64 whose alphabet is in ASCII order, so that text order is byte order.

Rule: one text per byte string; everything else is refused.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import b2a_base64

from lace.errors import InvalidText

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~"  # 006-ALPHA-01

_RFC4648 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_TO_ASCEND = bytes.maketrans(_RFC4648, ALPHABET.encode())
_FROM_ASCEND = bytes.maketrans(ALPHABET.encode(), _RFC4648)
_SYMBOLS = frozenset(ALPHABET)
# The last symbol of a text of length 2 or 3 mod 4 carries 4 or 2 filler bits that must be zero.
_LAST_SYMBOLS = {0: _SYMBOLS, 2: frozenset(ALPHABET[::16]), 3: frozenset(ALPHABET[::4])}


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
    if not _SYMBOLS.issuperset(text):
        outside = next(c for c in text if c not in _SYMBOLS)
        rule = "b64a-padding" if outside == "=" else "b64a-alphabet"
        raise InvalidText(f"B64A has no symbol {outside!r}", rule=rule, place=f"symbol {text.index(outside)}")
    remainder = len(text) % 4
    if remainder == 1:  # 006-DEC-03
        raise InvalidText("no B64A text has a length of 1 mod 4", rule="b64a-length", found=f"{len(text)} symbols")
    if text and text[-1] not in _LAST_SYMBOLS[remainder]:  # 006-DEC-04, 006-DEC-05
        raise InvalidText(
            "the filler bits of the last B64A symbol must be zero", rule="b64a-filler", found=repr(text[-1])
        )
    return b64decode(text.encode("ascii").translate(_FROM_ASCEND) + b"=" * (-len(text) % 4))


def is_canonical(text: str, size: int | None = None) -> bool:
    """Whether a text is canonical B64A, of `size` bytes if given; the cheap test for hot paths."""
    if size is not None and len(text) != (8 * size + 5) // 6:
        return False
    return len(text) % 4 != 1 and _SYMBOLS.issuperset(text) and (not text or text[-1] in _LAST_SYMBOLS[len(text) % 4])
