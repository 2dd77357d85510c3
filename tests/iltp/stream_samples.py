"""Pieces of ILTP streams for the tests of this directory, and one way to read them in every split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lace.errors import InvalidStream
from lace.iltp.items import FactLines, Item
from lace.iltp.reader import StreamReader
from lace.limits import RecordLimits, StreamLimits
from lace.notation.digest import digest
from lace.notation.fact import Fact
from lace.notation.identifiers import LacegramId

PREFACE = b"\xf0\x9f\xaa\xa2: iltp/1\n"
RECORD_MARK = b"\xf0\x9f\x96\xa7: "
PIECE_MARK = b"\xf0\x9f\xa7\xa9: "
HELLO_WORLD = RECORD_MARK + b"B.EA7_ehEAY8WYL2is4DZ9idBDQctY2cOfABSz06ARHQx.H3\nData-Length: 11\n\nhello world"
DATA = RECORD_MARK + b"B.8MXI1BSOLOcbeOoxz7yx_TbyhD6oDvUB1vzvusBCcVK.H3\nData-Length: 5\n\ndata!"
RULES = b"SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S)."
RULES_ID = "R.V3wv7Ug32jVLxA5Q6An85cW~HQfME12J4bJK7MpVBHS"
RULES_BLOCK = PIECE_MARK + RULES_ID.encode() + b" lacegram\n" + RULES + b"\n\n"

Outcome = tuple[list[Item], str | None]


def merge_runs(items: Iterable[Item]) -> Iterator[Item]:
    """The same items with adjacent fact runs joined: equal for every way to cut up the same bytes."""
    facts: list[Fact] = []
    size = 0
    for item in items:
        if isinstance(item, FactLines):
            facts += item.facts
            size += item.size
            continue
        if facts:
            yield FactLines(tuple(facts), size)
            facts, size = [], 0
        yield item
    if facts:
        yield FactLines(tuple(facts), size)


def read_in_pieces(
    pieces: Iterable[bytes],
    *,
    limits: StreamLimits | None = None,
    records: RecordLimits | None = None,
    eof: bool = False,
    max_block_bytes: int = 1 << 26,
) -> Outcome:
    """The items of a direction and the rule that ended it, if one did."""
    reader = StreamReader(limits, records, max_block_bytes=max_block_bytes)
    items: list[Item] = []
    try:
        for piece in pieces:
            items += reader.feed(piece)
        if eof:
            reader.receive_eof()
        while more := reader.read_all():
            items += more
    except InvalidStream as error:
        return list(merge_runs(items)), error.rule
    return list(merge_runs(items)), None


def read_every_way(data: bytes, **options: object) -> Outcome:
    """Read whole, byte by byte, in threes, and split once in the middle; all must agree."""
    whole = read_in_pieces([data], **options)  # type: ignore[arg-type]  # options pass through unchanged
    middle = len(data) // 2
    for pieces in (
        [data[i : i + 1] for i in range(len(data))],
        [data[i : i + 3] for i in range(0, len(data), 3)],
        [data[:middle], data[middle:]],
    ):
        assert read_in_pieces(pieces, **options) == whole  # type: ignore[arg-type]
    return whole


def lacegram_block(text: bytes, identifier: str | None = None, kind: str = "lacegram") -> bytes:
    """A resource block, its id right unless another is given."""
    name = identifier or str(LacegramId.of(digest(text)))
    return PIECE_MARK + f"{name} {kind}\n".encode() + text + b"\n\n"
