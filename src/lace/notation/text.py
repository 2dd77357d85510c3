"""The gate for text: valid UTF-8, in NFC, and the single-quoted constants of 030 and 050.

Rule: bytes become text only here, and what is not NFC stays out.
"""

from __future__ import annotations

from unicodedata import is_normalized

from lace.errors import InvalidText, excerpt


def decode_text(data: bytes, place: str = "") -> str:
    """UTF-8 bytes as NFC text, or InvalidText."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidText("invalid UTF-8", rule="text-utf8", place=place, found=f"byte {error.start}") from None
    require_nfc(text, place)
    return text


def require_nfc(text: str, place: str = "") -> None:
    """Raise InvalidText unless the text is in NFC and encodable."""
    if text.isascii():
        return
    if not is_normalized("NFC", text):
        raise InvalidText("text is not in Unicode normal form NFC", rule="text-nfc", place=place, found=excerpt(text))
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidText("text holds a lone surrogate", rule="text-utf8", place=place, found=excerpt(text)) from None


def is_nfc(text: str) -> bool:
    """Whether a text is in NFC."""
    return text.isascii() or is_normalized("NFC", text)


def quote(value: str) -> str:
    r"""A value as a constant with minimal escapes (P1).

    >>> print(quote("it's"))
    'it\'s'
    """
    if "'" not in value and "\\" not in value:
        return f"'{value}'"
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
