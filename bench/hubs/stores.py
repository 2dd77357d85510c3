"""A lace of many small records in ten groups, and which records each of ten rule sets selects of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lace.differences.ids import Ids, ids_of_bytes, ids_of_texts
from lace.notation.tai import TAI
from lace.policy.compose import union
from lace.policy.operand import Module
from lace.policy.select import select_all, select_coordinate
from lace.records.model import Blob, Plex, ValidRecord
from lace.records.validate import validate
from lace.records.write import encode_record
from lace.store import open_store

RULE_SETS = 10
NEWS = "u/news"  # what every rule set selects
_BATCH = 10_000


def group_of(number: int) -> str:
    return f"u/g{number % RULE_SETS}"


def record_of(number: int, group: str | None = None) -> ValidRecord:
    tai = TAI.from_ns((1_640_995_200 + number) * 10**9)
    name = f"links/{number:07}"
    plex = Plex(group=group or group_of(number), app="ding", name=name, tai=tai, blob=Blob(b"%d" % number))
    return validate(encode_record(plex))


def rules(number: int) -> Module:
    """The first rule set selects everything, each other one a group and the news."""
    if number == 0:
        return select_all()
    return union([select_coordinate(f"//{group_of(number)}//"), select_coordinate(f"//{NEWS}//")])


@dataclass(frozen=True, slots=True)
class Hub:
    """The server's lace, and what each rule set selects of it."""

    path: Path
    selected: tuple[Ids, ...]


def make_hub(folder: Path, count: int) -> Hub:
    """Made once for a folder and a count."""
    path, kept = folder / f"hub-{count}.lace", folder / f"hub-{count}.ids"
    if not kept.exists():
        path.unlink(missing_ok=True)
        hashes: list[str] = []
        with open_store(path, create=True) as store:
            for start in range(0, count, _BATCH):
                records = [record_of(number) for number in range(start, min(start + _BATCH, count))]
                store.put(records)
                hashes += [record.hash for record in records]
        columns = [ids_of_texts(hashes[number::RULE_SETS]).to_bytes() for number in range(RULE_SETS)]
        kept.write_bytes(b"".join(len(column).to_bytes(8, "big") + column for column in columns))
    data, groups = memoryview(kept.read_bytes()), []
    while data:
        size = int.from_bytes(data[:8], "big")
        groups.append(ids_of_bytes(bytes(data[8 : 8 + size])))
        data = data[8 + size :]
    everything = groups[0]
    for group in groups[1:]:
        everything = everything.with_(group)
    assert len(everything) == count
    assert np.all(everything.words[0][1:] >= everything.words[0][:-1])
    return Hub(path, (everything, *groups[1:]))
