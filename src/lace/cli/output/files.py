"""Output files: standard output, or a file that appears only once it is complete.

Rule: a command that fails leaves an existing file as it was. A pipe or a file gets the exact bytes; a terminal gets
text in which everything that could steer it is spelled out.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from lace.cli.output.output import say
from lace.cli.output.text import visible


@contextmanager
def output_to(path: Path | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that gets its name at the end."""
    if path is None:
        if sys.stdout.isatty():
            terminal = TerminalWriter()
            yield cast("BinaryIO", terminal)
            terminal.close()
            return
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if path.exists() and not path.is_file():  # a device or a pipe is written to, not replaced
        with path.open("wb") as file:
            yield file
        return
    with _replacing(path) as file:
        yield file


class TerminalWriter(io.RawIOBase):
    """Shows bytes on a terminal as the text they are."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._goes_on = False  # whether the next bytes continue a line

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._show(self._decoder.decode(bytes(data)))
        return len(data)

    def _show(self, text: str) -> None:
        if text:
            say(visible(text, goes_on=self._goes_on), nl=False)
            self._goes_on = not text.endswith("\n")

    def close(self) -> None:
        if not self.closed:
            self._show(self._decoder.decode(b"", final=True))
        super().close()


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    """The umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
