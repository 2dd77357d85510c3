"""Files stored many at a time are the records that storing them one by one makes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import lace
from lace.errors import InvalidInput
from lace.porcelain.cutting import INLINE_BYTES, SMALLEST, cut_content
from lace.porcelain.putting import put_files
from lace.porcelain.smallfiles import LARGEST, SmallFile
from lace.records.fileform import Attributes, base_headers

TAI = lace.TAI("1700000000:000000000")
KEY = lace.generate_key()
HEADERS = (*base_headers(()), *Attributes(time_ns=10**18).headers())
SIZES = [0, 1, INLINE_BYTES, INLINE_BYTES + 1, SMALLEST, SMALLEST + 1, 300_000, LARGEST]


def files() -> list[SmallFile]:
    draw = random.Random(1)
    found = [SmallFile(f"at/{size}", TAI, HEADERS, draw.randbytes(size)) for size in SIZES]
    return [*found, found[4]._replace(name="at/the same"), SmallFile("at/x", TAI, (), b"\xf0\x9f\x96\xa7: P\n\n")]


@pytest.mark.parametrize("key", [None, KEY])
def test_files_stored_together_are_what_storing_each_makes(key: lace.SigningKey | None) -> None:
    with lace.open(":memory:") as together, lace.open(":memory:") as alone:
        records = put_files(together, files(), group="g", app="a", sign=key)
        for file in files():
            content, size = file.data, len(file.data)
            alone.put(content, group="g", app="a", name=file.name, tai=TAI, headers=file.headers, sign=key,
                      size=size, cut=cut_content)  # fmt: skip
        kept = [{entry.name: entry.hash for entry in one.store.entries()} for one in (together, alone)]
        if key is None:  # a signature is made with fresh randomness
            assert kept[0] == kept[1]
            assert {name for _, name in together.store.records_since()} == {
                name for _, name in alone.store.records_since()
            }
        assert [together.get(name) for name in records.hashes] == [file.data for file in files()]
        assert [kept[0][file.name] for file in files()] == records.hashes
        assert not list(together.verify())
        assert {entry.signer for entry in together.store.entries()} == {key and key.verifier}


def test_what_was_forgotten_is_taken_again_by_whoever_stores_it_here(tmp_path: Path) -> None:
    with lace.open(tmp_path / "notes.lace", create=True) as notes:
        first = put_files(notes, files(), group="g", app="a", sign=None)
        notes.forget(*first.hashes)
        again = put_files(notes, files(), group="g", app="a", sign=None)
        assert again.hashes == first.hashes
        assert [notes.get(name) for name in again.hashes] == [file.data for file in files()]
        assert not set(notes.forgotten()) & set(again.hashes)


def test_one_that_is_no_record_refuses_all() -> None:
    with lace.open(":memory:") as notes:
        for bad in (("a\nName: b", HEADERS), ("a{b}", HEADERS), ("a", (("X", "1\nY: 2"),)), ("x" * 5000, ())):
            with pytest.raises(InvalidInput):
                put_files(notes, [*files(), SmallFile(bad[0], TAI, bad[1], b"")], group="g", app="a", sign=None)
            assert not list(notes.store.entries())
