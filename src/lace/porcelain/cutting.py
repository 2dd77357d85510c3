"""Content cut where its bytes say so (FastCDC), so that versions and files share the chunks they have in common.

Rule: the same bytes are cut at the same places everywhere; `tests/vectors/folder.json` pins where.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lace.limits import KIB

if TYPE_CHECKING:
    from lace.porcelain.content import ByteReader

INLINE_BYTES = KIB  # up to here content is part of its record; beyond, it is in Blobs that a renamed file shares
_AVERAGE = 128 * KIB
SMALLEST = 32 * KIB  # content up to here is one chunk
_LARGEST = 512 * KIB


def cut_content(source: ByteReader) -> Iterator[bytes]:
    """The chunks of a content, one in memory at a time."""
    from pyfastcdc import FastCDC

    cutter = FastCDC(_AVERAGE, min_size=SMALLEST, max_size=_LARGEST, normalized_chunking=1, seed=0)
    for chunk in cutter.cut_stream(source):
        yield bytes(chunk.data)
