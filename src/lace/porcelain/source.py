"""Where content comes from: bytes, a file, or anything with `read`.

Rule: a file is opened here and closed here; what the caller opened stays the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from lace.porcelain.content import ByteReader
from lace.values import dataclass

Content = bytes | bytearray | memoryview | Path | ByteReader
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class CountedContent:
    """A source that tells how much was read from it."""

    source: ByteReader
    progress: Progress

    def read(self, size: int, /) -> bytes:
        data = self.source.read(size)
        self.progress(len(data))
        return data


@contextmanager
def opened_content(content: Content) -> Iterator[tuple[ByteReader, int | None]]:
    """The content as something to read from, and its size where that is known."""
    if isinstance(content, Path):
        with content.open("rb") as file:
            yield file, content.stat().st_size
    elif isinstance(content, bytes | bytearray | memoryview):
        yield BytesIO(content), memoryview(content).nbytes
    elif not hasattr(content, "read"):
        advice = "; encode text first" if isinstance(content, str) else f", not {type(content).__name__}"
        raise TypeError(f"content is bytes, a Path or an open file{advice}")
    else:
        yield content, None
