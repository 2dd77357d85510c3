"""Readers over streams that are already whole."""

from __future__ import annotations

from typing import TypeVar

from lace.errors import InvalidStream
from lace.notation.bytesource import ByteSource, Reader

T = TypeVar("T")


def read_whole(reader: Reader[T], source: ByteSource) -> T:
    """Run a reader over a source that already holds the whole stream."""
    source.feed_eof()
    try:
        next(reader)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    raise InvalidStream("the stream ended inside an item", rule="stream-cut", place=f"byte {source.consumed}")
