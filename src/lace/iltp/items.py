"""What a stream direction is made of (060): a closed union of items.

Rule: items are values without meaning for the exchange; which of them may come now is the session's business.
Comments are framing and never become items.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lace.notation.fact import Fact
from lace.values import dataclass


@dataclass(frozen=True, slots=True)
class Preface:
    """The knot line that begins a direction."""


@dataclass(frozen=True, slots=True)
class FactLines:
    """A run of consecutive fact lines of one block and their bytes, LFs included.

    Where one run ends and the next begins is an accident of how the bytes arrived.
    """

    facts: Sequence[Fact]
    size: int
    packed: int | None = None  # bytes of the stream that held them (070); what lies in one item is told with its first


@dataclass(frozen=True, slots=True)
class Resource:
    """The recovered bytes of a resource block: well framed, not yet checked for what they claim to be."""

    id: str
    kind: str
    text: bytes


class RecordItem(NamedTuple):
    """One delimited stored record (P21), markline included; nothing inside it is validated."""

    claimed: str  # the hash text of its markline
    data: bytes


@dataclass(frozen=True, slots=True)
class BlankLine:
    """The end of a fact block or of a record batch."""


@dataclass(frozen=True, slots=True)
class EndOfStream:
    """The peer closed between two items; `block_open` if the last block was not finished."""

    block_open: bool


Item = Preface | FactLines | Resource | RecordItem | BlankLine | EndOfStream

PREFACE_ITEM = Preface()
BLANK_LINE = BlankLine()
