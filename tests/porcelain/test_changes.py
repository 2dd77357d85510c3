"""Changes as they happen, and puts that share transactions."""

from __future__ import annotations

import asyncio
import random
import re
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

import lace
from lace.errors import InvalidRecord, StoreError
from lace.porcelain.changes import ChangeStream, parse_cursor
from lace.porcelain.lace import Lace


def put(into: Lace, name: str) -> str:
    return into.put(name.encode(), group="u", app="ding", name=name)


@pytest.fixture(params=["file", "memory"])
def notes(request: pytest.FixtureRequest, tmp_path: Path):  # type: ignore[no-untyped-def]
    path = tmp_path / "a.lace" if request.param == "file" else ":memory:"
    with lace.open(path, create=True) as opened:
        yield opened


def test_a_reader_hears_of_what_came_and_went_since_its_cursor(notes: Lace) -> None:
    first = put(notes, "1")
    start = notes.cursor()
    second, third = put(notes, "2"), put(notes, "3")
    (came,) = notes.changes(start, wait_s=0)
    assert (came.added, came.removed) == ((second, third), ())
    notes.delete(first)
    (went,) = notes.changes(came.cursor, wait_s=0)
    assert (went.added, went.removed) == ((), (first,))
    assert list(notes.changes(went.cursor, wait_s=0)) == []
    assert list(notes.changes(wait_s=0)) == []
    both = list(notes.changes(start, wait_s=0))
    assert [set(both[0].added), set(both[0].removed)] == [{second, third}, {first}]


def test_what_came_and_went_in_between_is_not_told(notes: Lace) -> None:
    start = notes.cursor()
    notes.delete(put(notes, "1"))
    assert list(notes.changes(start, wait_s=0)) == []
    later = put(notes, "2")
    assert [change.added for change in notes.changes(start, wait_s=0)] == [(later,)]


def test_a_long_backlog_comes_in_portions(notes: Lace) -> None:
    names = [put(notes, str(number)) for number in range(7)]
    stream = ChangeStream(notes.store, parse_cursor("0/0"), 0.0, max_records=3)
    portions = [change.added for change in stream]
    assert [len(portion) for portion in portions] == [3, 3, 1]
    assert [name for portion in portions for name in portion] == names


@pytest.mark.parametrize("seed", range(5))
def test_any_cursor_on_the_way_leads_to_the_same_end(notes: Lace, seed: int) -> None:
    rng = random.Random(seed)
    alive: set[str] = set()
    cursors = [("0/0", frozenset(alive))]
    for number in range(12):
        if alive and rng.random() < 0.4:
            gone = rng.choice(sorted(alive))
            notes.delete(gone)
            alive.remove(gone)
        else:
            alive.add(put(notes, str(number)))
        cursors.append((notes.cursor(), frozenset(alive)))
    for cursor, then in cursors:
        state = set(then)
        for change in notes.changes(cursor, wait_s=0):
            state = (state | set(change.added)) - set(change.removed)
        assert state == alive


def test_a_cursor_of_another_lace_and_one_that_is_none_are_refused(notes: Lace) -> None:
    for name in "123":
        put(notes, name)
    ahead = notes.cursor()
    with lace.open(":memory:") as other, pytest.raises(lace.CursorExpired, match="ahead"):
        list(other.changes(ahead, wait_s=0))
    for text in ("", "7", "a/b", "-1/0", "1/2/3", "٣/0"):
        with pytest.raises(lace.InvalidText):
            notes.changes(text)


def test_async_readers_hear_what_another_process_stores(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    code = "import lace, sys\nwith lace.open(sys.argv[1]) as n: print(n.put(b'x', group='u', app='a', name='n'))"

    async def first_change(notes: Lace) -> lace.Change:
        reading = notes.changes()
        writer = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, str(path), stdout=subprocess.PIPE, env=None
        )
        async for change in reading:
            told, _ = await writer.communicate()
            assert change.added == (told.decode().strip(),)
            return change
        raise AssertionError("the stream ended")

    with lace.open(path, create=True) as notes:
        change = asyncio.run(asyncio.wait_for(first_change(notes), 60))
        assert notes.get(change.added[0]) == b"x"


def test_puts_of_a_batch_are_durable_together_when_its_block_ends(notes: Lace) -> None:
    start = notes.cursor()
    with notes.batch() as batch:
        found = [batch.put(b"x", group="u", app="a", name=str(number)) for number in range(5)]
        assert batch.waiting == 5
        assert list(notes.changes(start, wait_s=0)) == []
    assert batch.waiting == 0
    assert [set(change.added) for change in notes.changes(start, wait_s=0)] == [set(found)]


def test_a_batch_takes_nothing_before_its_block_begins(notes: Lace) -> None:
    batch = notes.batch()
    for work in (partial(batch.put, b"x", group="u", app="a", name="1"), batch.flush):
        with pytest.raises(StoreError, match="a batch takes records inside its block"):
            work()
    with batch:
        batch.put(b"x", group="u", app="a", name="1")
    assert notes.get("//u//a//1") == b"x"


def test_a_batch_takes_nothing_once_its_block_has_ended(notes: Lace) -> None:
    """What it took then would be lost without a word."""
    with notes.batch() as ended:
        ended.put(b"x", group="u", app="a", name="1")
    with suppress(InvalidRecord), notes.batch() as failed:
        failed.put(b"never stored", group="u", app="a", name="2")
        failed.put(b"refused", group="u", app="{", name="3")
    for batch in (ended, failed):
        with pytest.raises(StoreError, match="the block of this batch has ended"):
            batch.put(b"late", group="u", app="a", name="3")
        with pytest.raises(StoreError, match="has ended"):
            batch.flush()
        with pytest.raises(StoreError, match="has ended"), batch:
            pass
    assert [row.coordinate for row in notes.list()] == ["//u//a//1"]


def test_a_batch_whose_block_fails_stores_nothing_more(notes: Lace) -> None:
    def fill() -> None:
        with notes.batch() as batch:
            batch.put(b"kept", group="u", app="a", name="1")
            batch.flush()
            batch.put(b"lost", group="u", app="a", name="2")
            batch.put(b"bad", group="u", app="no{t", name="3")

    with pytest.raises(lace.InvalidRecord):
        fill()
    assert [row["Name"] for row in notes.list()] == ["1"]
    with notes.batch():
        pass  # an empty one is fine


ANSWER = "answer = lace.open(':memory:').query('S(P) :- Have(P).')"
DOORS = {
    "pyspark": ("spark", "import lace.spark; lace.spark.spark_session()"),
    "pyarrow": ("arrow", f"{ANSWER}; answer.__arrow_c_stream__()"),
    "pandas": ("arrow", f"{ANSWER}; answer.to_pandas()"),
    "cryptography": (
        "tls",
        "from lace.transports.certificate import write_self_signed as make; from pathlib import Path as P;"
        " import datetime as d; make(P('c'), P('k'), ['h'], not_before=d.datetime.now(d.UTC), valid_days=1)",
    ),
}


@pytest.mark.parametrize("package", DOORS)
def test_a_missing_package_is_named_with_its_extra_at_every_door(package: str) -> None:
    extra, door = DOORS[package]
    code = (
        f"import sys; sys.modules[{package!r}] = None\nimport lace\n"
        f"try:\n    {door}\nexcept lace.MissingExtra as error:\n    print(error.package, error.extra)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{package} {extra}\n", done.stderr


@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_the_inspector_names_its_extra(package: str) -> None:
    run = "from lace.cli import main; sys.argv = ['lace', 'inspect', '--node', 'tcp:x']; main()"
    code = f"import sys; sys.modules[{package!r}] = None; {run}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "pip install 'lace-protocol[inspector]'" in done.stderr
    assert done.returncode == 1


def test_lace_knows_its_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", lace.__version__)
