"""The identifiers of the suite as types of their own: a checked text that is also a fact value.

Rule: `parse` is the door for text from outside; `of` builds from digest bytes. An identifier is a `str`, so it
stands in facts, sorts bytewise and costs nothing to print.
"""

from __future__ import annotations

import re
from typing import ClassVar, Self

from lace.errors import InvalidText, excerpt
from lace.notation import b64a

H3 = "H3"
RECORD_TYPES = ("B", "P", "S")
DIGEST_BYTES = 32
DIGEST_PATTERN = b64a.pattern_of(DIGEST_BYTES)
PAYLOAD = slice(2, 2 + b64a.text_length(DIGEST_BYTES))  # of every identifier with a letter, a dot and a digest


class Identifier(str):
    """Prefix, B64A of 32 bytes, suffix."""

    __slots__ = ()
    PREFIX: ClassVar[str] = ""
    SUFFIX: ClassVar[str] = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """The identifier that `text` spells, or InvalidText."""
        inner = text[len(cls.PREFIX) : len(text) - len(cls.SUFFIX)]
        if not (text.startswith(cls.PREFIX) and text.endswith(cls.SUFFIX) and b64a.is_canonical(inner, DIGEST_BYTES)):
            form = f"{cls.PREFIX}<43 B64A characters>{cls.SUFFIX}"
            raise InvalidText(f"a {cls.__name__} has the form {form}", rule="identifier", found=excerpt(text))
        return cls(text)

    @classmethod
    def of(cls, digest: bytes) -> Self:
        """The identifier of 32 digest bytes."""
        return cls(f"{cls.PREFIX}{b64a.encode(digest)}{cls.SUFFIX}")

    @property
    def payload(self) -> str:
        """The B64A characters between prefix and suffix."""
        return str(self)[len(self.PREFIX) : len(self) - len(self.SUFFIX)]

    @property
    def digest(self) -> bytes:
        """The 32 bytes that the identifier spells."""
        return b64a.decode(self.payload)


class Verifier(Identifier):
    """`V.<b64a>.H3`: a public key's x-coordinate."""

    __slots__ = ()
    PREFIX: ClassVar[str] = "V."
    SUFFIX: ClassVar[str] = f".{H3}"
    PATTERN: ClassVar[str] = rf"V\.{DIGEST_PATTERN}\.{H3}"


class LacegramId(Identifier):
    """`R.<b64a>`: canonical lacegram text."""

    __slots__ = ()
    PREFIX: ClassVar[str] = "R."


class RuleId(Identifier):
    """`U.<b64a>`: one canonical rule line."""

    __slots__ = ()
    PREFIX: ClassVar[str] = "U."


class ExchangePlanId(Identifier):
    """`E.<b64a>`: a canonical exchange-plan transcript."""

    __slots__ = ()
    PREFIX: ClassVar[str] = "E."


RECORD_HASH_LENGTH = PAYLOAD.stop + len(f".{H3}")


class RecordHash(str):
    """`T.<b64a>.H3` with T one of B, P, S: a record of the supported definition."""

    __slots__ = ()
    PATTERN: ClassVar[str] = rf"[{''.join(RECORD_TYPES)}]\.{DIGEST_PATTERN}\.{H3}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The record hash that `text` spells, or InvalidText."""
        if not is_record_hash(text):
            form = "B, P or S, a dot, 43 B64A characters and .H3"
            raise InvalidText(f"a record hash is {form}", rule="record-hash", found=excerpt(text))
        return cls(text)

    @classmethod
    def of(cls, record_type: str, digest: bytes) -> Self:
        """The hash text of a record type and the 32 digest bytes of its payload."""
        return cls(f"{record_type}.{b64a.encode(digest)}.H3")

    @property
    def type(self) -> str:
        """B, P or S."""
        return self[0]

    @property
    def payload(self) -> str:
        """The 43 B64A characters."""
        return self[PAYLOAD]

    @property
    def digest(self) -> bytes:
        """The 32 digest bytes."""
        return b64a.decode(self.payload)


_RECORD_HASH = re.compile(RecordHash.PATTERN)


def is_record_hash(text: str) -> bool:
    """Whether a text is the hash of a record of the supported definition; the cheap test for hot paths."""
    return _RECORD_HASH.fullmatch(text) is not None
