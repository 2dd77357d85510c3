"""The walk of a record: the modules that it passes from its arrival over TCP until it is forwarded."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import lace
from interlace.pair import blob
from interop.harness import filled, serving
from interop.test_processes import environment
from lace.records.validate import validate
from lace.workers.lending import STOCK

NEIGHBOURS = Path(__file__).parent / "neighbours.py"
SOURCES = str(Path(lace.__path__[0]))
MOST_MODULES = 64  # only goes down; the page on the architecture says how many, the aim was 60
VARIADIC = 0x0C  # of a code: whether it has *arguments or **arguments


class Walk:
    """The modules of ours through which a record goes: those with a function that is called with its name or its bytes,
    as they are or in what the function is given, on any thread."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.name, self.data = "", b""  # of the record that is followed

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if not self.name or event != "call" or not code.co_filename.startswith(SOURCES):
            return
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & VARIADIC)]
        held = [frame.f_locals[name] for name in arguments if name not in ("self", "cls") and name in frame.f_locals]
        if any(map(self.is_held_by, held)):
            self.modules.add(str(frame.f_globals.get("__name__")))

    def is_held_by(self, value: object, depth: int = 3) -> bool:
        match value:
            case str():
                return self.name in value
            case bytes() | bytearray():
                return self.data in value or self.name.encode() in value
            case dict():
                return depth > 0 and any(self.is_held_by(one, depth - 1) for pair in value.items() for one in pair)
            case list() | tuple() | set() | frozenset():
                return depth > 0 and any(self.is_held_by(one, depth - 1) for one in value)
        if dataclasses.is_dataclass(value) and depth > 0:
            values = (getattr(value, field.name, None) for field in dataclasses.fields(value))
            return any(self.is_held_by(one, depth - 1) for one in values)
        return False


@contextmanager
def profiled() -> Iterator[Walk]:
    walk = Walk()
    STOCK.forget()  # threads that idle since earlier tests would not be watched
    threading.setprofile(walk.note)
    sys.setprofile(walk.note)
    try:
        yield walk
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


@pytest.mark.long
@pytest.mark.skipif(sys.gettrace() is not None, reason="what measures coverage has the place of the profiler")
def test_a_record_that_arrives_over_tcp_and_is_forwarded_passes_few_modules(tmp_path: Path) -> None:
    async def run() -> set[str]:
        with profiled() as walk:
            async with serving(filled([]), tmp_path, "tcp") as middle:
                surroundings = environment(tmp_path)
                surroundings["PYTHONPATH"] += os.pathsep + str(NEIGHBOURS.parent.parent)
                neighbours = await asyncio.create_subprocess_exec(
                    sys.executable, str(NEIGHBOURS), str(middle.address), env=surroundings,
                    stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                )  # fmt: skip
                assert neighbours.stdin is not None
                assert neighbours.stdout is not None
                for content in (b"1", b"2", b"new"):  # what is loaded and prepared once is there after the first
                    if content == b"new":
                        record = validate(blob(content))
                        walk.name, walk.data = record.hash, record.stored
                    neighbours.stdin.write(content + b"\n")
                    assert await neighbours.stdout.readline() == b"there\n"
                walk.name = ""
                neighbours.stdin.close()
                await neighbours.wait()
        return walk.modules

    passed = asyncio.run(run())
    # From the first bytes on: read, judged, stored, found by rules, written to the other link.
    road = {"transports.pipe", "iltp.reader", "records.validate", "store.memory", "runtime.rules.byrecord"}
    assert road <= {module.removeprefix("lace.") for module in passed}
    assert len(passed) <= MOST_MODULES, sorted(passed)
