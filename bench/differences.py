"""How many bytes it takes two sides to learn how a million records differ, beside other ways to do it.

    python bench/differences.py [--quick] [--laces 1000000] [--stores FOLDER]

First the messages alone, ids only; then two real laces over tcp that differ in 1,000 records, as processes: a million
records each unless told, 20,000 in a quick run. The laces are made once, which takes longest; with --stores they stay
in a folder and are used again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import psutil
from network import ENVIRONMENT, Memory, free_port, interlace, served
from report import Report
from yardsticks.negentropy import Side, reconcile

from lace.differences.ids import EMPTY, Ids, digests_of, ids_of_digests
from lace.differences.idset import IdSet, set_of
from lace.differences.keyed import U64, KeyedIds, derive_key, keyed_ids
from lace.differences.peel import Peeler
from lace.differences.setview import SetView, measured, measured_set
from lace.differences.sketchsize import CompareLimits, first_symbols, more_symbols
from lace.differences.sums import agrees
from lace.differences.tree import UNKNOWN, told_root
from lace.differences.wire import encode_root, encode_short_ids, encode_summary, encode_symbols
from lace.notation.tai import TAI
from lace.records.model import Blob, Plex
from lace.records.validate import validate
from lace.records.write import encode_record
from lace.store import open_store

RECORDS = 1_000_000
LABEL = "Opq_s"
SALT = "340282366920938463463374607431768211455"
LETTERS = np.frombuffer(b"BPS", np.uint8)


@dataclass(slots=True)
class Cost:
    """Bytes of both directions, and the processor's seconds of each side."""

    told: list[str]
    asker_s: float = 0.0
    teller_s: float = 0.0
    turns: int = 1

    @property
    def size(self) -> int:
        return sum(len(line) + 1 for line in self.told)

    @property
    def packed(self) -> int:
        return len(zlib.compress("\n".join(self.told).encode(), 6))


class Watch:
    """Adds the processor's time to one side."""

    def __init__(self, cost: Cost, side: str) -> None:
        self._cost, self._side = cost, side

    def __enter__(self) -> None:
        self._start = time.process_time()

    def __exit__(self, *_: object) -> None:
        spent = time.process_time() - self._start
        setattr(self._cost, self._side, getattr(self._cost, self._side) + spent)


def random_ids(count: int, seed: int) -> Ids:
    rng = np.random.default_rng(seed)
    return ids_of_digests(rng.integers(0, 256, (count, 32), dtype=np.uint8), LETTERS[rng.integers(0, 3, count)])


def advertisements(ids: Ids) -> list[str]:
    return [f"Advertised('{record}','{LABEL}')" for record in ids.texts()]


def dialogue(ours: IdSet, theirs: IdSet, seed: int) -> tuple[Cost, Ids, Ids]:
    """Every line that 070 puts on the wire for two sets, and what each side lacks."""
    key = derive_key(b"%d" % seed, SALT.encode())
    cost = Cost([])
    with Watch(cost, "asker_s"):
        roots = [told_root(UNKNOWN.of(ours).root(), key)]
        mine = measured_set(ours, key)
    with Watch(cost, "teller_s"):
        roots.append(told_root(UNKNOWN.of(theirs).root(), key))
    for held, root in zip((ours, theirs), roots, strict=True):
        cost.told.append("DifferenceRoot('{}','{}')".format(*encode_root(len(held), root)))
    cost.told.append("DifferenceSummary('{}','{}','{}')".format(*encode_summary(mine)))
    if roots[0] == roots[1]:
        cost.told += ["", "", "", ""]  # two blocks each, and nothing in the second
        return cost, EMPTY, EMPTY
    with Watch(cost, "teller_s"):
        teller = SetView(theirs, key, sums=True)
        other = teller.measured
    cost.told.append("DifferenceSummary('{}','{}','{}')".format(*encode_summary(other)))
    first = first_symbols(mine, other, CompareLimits())
    assert first
    with Watch(cost, "asker_s"):
        asker, peeler = SetView(ours, key), Peeler(key)
    start, end, found = 0, first, None
    while found is None:
        with Watch(cost, "teller_s"):
            symbols = teller.symbols(start, end)
        lines = [f"DifferenceSymbols('{start + 56 * n}','{text}')" for n, text in enumerate(encode_symbols(symbols))]
        cost.told += lines
        with Watch(cost, "asker_s"):
            found = peeler.give(asker.symbols(start, end).minus(symbols))
        if found is None:
            start, end = end, more_symbols(end, CompareLimits())
            cost.told.append(f"DifferenceMore('{end}')")
        cost.turns += 1
    with Watch(cost, "asker_s"):
        lacking = asker.named(found.mine)
    with Watch(cost, "teller_s"):
        wanted = teller.named(found.theirs)
    assert lacking is not None
    assert wanted is not None
    assert agrees(mine - measured(lacking, key) + measured(wanted, key), other)
    cost.told += [f"DifferenceLacks('{text}')" for text in encode_short_ids(found.theirs)]
    return cost, lacking, wanted


def two_sets(different: int) -> tuple[Ids, Ids]:
    common = random_ids(RECORDS - different // 2, seed=1)
    return common.with_(random_ids(different // 2, seed=2)), common.with_(
        random_ids(different - different // 2, seed=3)
    )


def negentropy_cost(a: Ids, b: Ids, moment: Callable[[bytes], int]) -> tuple[int, int]:
    sides = []
    for ids in (a, b):
        rows = digests_of(ids).tobytes()
        digests = [rows[at : at + 32] for at in range(0, len(rows), 32)]
        sides.append(Side([(moment(digest), digest) for digest in digests]))
    size, turns = reconcile(*sides)
    assert len(sides[0].have) + len(sides[0].need) == len(a.without(b)) + len(b.without(a))
    return size, turns


class PartSums(NamedTuple):
    """Counts and keyed sums, one of each for every part."""

    counts: npt.NDArray[np.int64]
    short: U64
    tail: U64

    def plus(self, other: PartSums) -> PartSums:
        """The sums of two sets that share nothing."""
        return PartSums(self.counts + other.counts, self.short + other.short, self.tail + other.tail)

    def differing(self, other: PartSums) -> npt.NDArray[np.int64]:
        """The parts in which two sets differ."""
        same = (self.counts == other.counts) & (self.short == other.short) & (self.tail == other.tail)
        return np.flatnonzero(~same)


def bucket_sums(keyed: KeyedIds, bits: int) -> PartSums:
    """Sums by the first bits of the short id: parts that are alike in size whatever the records are."""
    return _sums_of_parts(keyed, (keyed.short >> np.uint64(64 - bits)).astype(np.int64), 1 << bits)


def range_sums(keyed: KeyedIds, order: npt.NDArray[np.int64], cuts: npt.NDArray[np.int64]) -> PartSums:
    """Sums by ranges of something both sides order records by (a time, a hash): one more part than there are cuts."""
    return _sums_of_parts(keyed, np.searchsorted(cuts, order, side="right"), len(cuts) + 1)


def _sums_of_parts(keyed: KeyedIds, part: npt.NDArray[np.int64], parts: int) -> PartSums:
    short, tail = np.zeros(parts, np.uint64), np.zeros(parts, np.uint64)
    np.add.at(short, part, keyed.short)
    np.add.at(tail, part, keyed.tail)
    return PartSums(np.bincount(part, minlength=parts), short, tail)


def ways_compared(report: Report, a: Ids, b: Ids, newest: bool) -> None:
    """Bytes of ways that were not taken: ranges by time, sums by bucket before a sketch."""
    key = derive_key(b"other", b"ways")
    ka, kb = keyed_ids(a, key), keyed_ids(b, key)
    name = "newest 1,000 differ" if newest else "1,000 differ"
    parts = bucket_sums(ka, 12).differing(bucket_sums(kb, 12))
    report.row(f"{name}: sums of 4,096 buckets first", 2 * 4096 * 16, "", f"{len(parts)} buckets differ", "", "")
    if newest:
        both = a.with_(b)
        order = np.arange(len(both))
        cuts = np.array([len(both) - (1 << n) for n in range(20, 3, -1)])
        sums = [range_sums(keyed_ids(ids, key), order[both.positions(ids)], cuts) for ids in (a, b)]
        report.row(
            f"{name}: sums of 18 ranges by time first",
            2 * 18 * 18,
            "",
            f"{len(sums[0].differing(sums[1]))} differ",
            "",
            "",
        )


# --- two laces -------------------------------------------------------------------------------------------------------

DIFFERENT = 1_000


def small_record(number: int) -> bytes:
    tai = TAI.from_ns((1_640_995_200 + number) * 10**9)
    return encode_record(
        Plex(group="u/people", app="ding", name=f"links/{number:07}", tai=tai, blob=Blob(b"%d" % number))
    )


def fill(path: Path, numbers: range) -> None:
    with open_store(path, create=not path.exists()) as store:
        for start in range(numbers.start, numbers.stop, 10_000):
            store.put([validate(small_record(n)) for n in range(start, min(start + 10_000, numbers.stop))])


def make_laces(folder: Path, count: int) -> tuple[Path, Path]:
    """Two laces that share all but half of DIFFERENT records each; copies of those in the folder, made if need be."""
    names = folder / f"near-{count}.lace", folder / f"far-{count}.lace"
    if not all(path.exists() for path in names):
        fill(names[0], range(count - DIFFERENT // 2))
        shutil.copy(names[0], names[1])
        for side, path in enumerate(names, start=1):
            fill(path, range(side * 10 * count, side * 10 * count + DIFFERENT // 2))
    near, far = (Path(shutil.copy(path, path.with_suffix(".used"))) for path in names)
    return near, far


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What one `lace interlace` cost."""

    size: int
    payload: int
    seconds: float
    near_cpu_s: float
    near_mb: float
    far_cpu_s: float
    far_mb: float


def exchange_of(near: Path, address: str, server: psutil.Process, *more: str, is_first: bool = False) -> Exchanged:
    """Of the first one the server pays for its start too: both sides are fresh processes then."""
    before, started = 0.0 if is_first else sum(server.cpu_times()[:2]), time.perf_counter()
    far_memory = Memory(server.pid)
    child = subprocess.Popen(interlace(near, address, *more), stdout=subprocess.PIPE, env=ENVIRONMENT)
    memory = Memory(child.pid)
    assert child.stdout is not None
    said = json.loads(child.stdout.read())
    _, _, used = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - started
    return Exchanged(
        size=said["bytes_received"] + said["bytes_sent"],
        payload=said["record_bytes_received"] + said["record_bytes_sent"],
        seconds=seconds,
        near_cpu_s=used.ru_utime + used.ru_stime,
        near_mb=memory.stop() / 1e6,
        far_cpu_s=sum(server.cpu_times()[:2]) - before,
        far_mb=far_memory.stop() / 1e6,
    )


@dataclass(frozen=True, slots=True)
class Earlier:
    """What the same exchange cost in standard mode before sets were shared."""

    size: int
    near_cpu_s: float


# By records and case. Of another run, on a machine of the same kind: bytes are the same anywhere, seconds are not.
# Those of nothing new were rounded to kilobytes of 1,024: summaries of 4,096 partitions each way, the same as ever.
EARLIER = {
    (100_000, "1,000 differ"): Earlier(5_400_000, 3.2),
    (100_000, "nothing new"): Earlier(642 << 10, 1.8),
    (1_000_000, "1,000 differ"): Earlier(51_800_000, 31.6),
    (1_000_000, "nothing new"): Earlier(650 << 10, 16.9),
}
CLAIMED_FROM = 1_000_000  # records, for the processor's time: below it, starting a process is most of it


def claim_standard(report: Report, name: str, count: int, cost: Exchanged) -> None:
    """The standard mode beside itself: no byte more, and a third of the work."""
    before = EARLIER.get((count, name))
    if before is None:
        return
    what = f"{count:,} each, standard, {name}"
    then = f"in another run on the same kind of machine, before sets were shared: {before.size:,} B"
    report.row(f"{what}: all bytes; {then}", cost.size, "", f"{before.near_cpu_s} s then", cost.near_cpu_s, "")
    report.at_most(f"{what}: all bytes, no more than then", wanted=before.size, got=cost.size, unit=" B")
    if count >= CLAIMED_FROM:
        text = f"{what}: CPU of the dialling side, {before.near_cpu_s} s then and {cost.near_cpu_s:.3g} s now"
        report.at_least(text, wanted=3, got=before.near_cpu_s / cost.near_cpu_s, unit="× less")


def claim(report: Report, name: str, count: int, cost: Exchanged) -> None:
    if name == "1,000 differ":
        what = f"{count:,} each that never met, 1,000 differ, fresh processes"
        report.at_most(f"{what}: CPU of the dialling side", wanted=2.5, got=cost.near_cpu_s, unit=" s")
        report.at_most(f"{what}: CPU of the serving side, start included", wanted=2.5, got=cost.far_cpu_s, unit=" s")
        report.at_most(f"{what}: memory of either side", wanted=300, got=max(cost.near_mb, cost.far_mb), unit=" MB")
    if name == "nothing new":
        what = f"{count:,} each, nothing new, a fresh process"
        report.at_most(f"{what}: memory", wanted=300, got=cost.near_mb, unit=" MB")
        report.at_most(f"{what}: its whole CPU", wanted=1.0, got=cost.near_cpu_s, unit=" s")


def laces(report: Report, folder: Path, count: int) -> None:
    """First contact and nothing new, compared and by the standard alone."""
    for standard in (False, True):
        near, far = make_laces(folder, count)
        more = ("--standard",) if standard else ()
        way = "standard" if standard else "compared"
        address = f"tcp:127.0.0.1:{free_port()}"
        with served(far, address, folder) as child:
            server = psutil.Process(child.pid)
            for name in ("1,000 differ", "nothing new"):
                cost = exchange_of(near, address, server, *more, is_first=name == "1,000 differ")
                row = f"two laces of {count:,}, {way}, {name}: bytes beside {cost.payload:,} of records"
                report.row(row, cost.size - cost.payload, "", f"{cost.seconds:.1f} s", cost.near_cpu_s, cost.far_cpu_s)
                (claim_standard if standard else claim)(report, name, count, cost)
        near.unlink()
        far.unlink()


def option(name: str, otherwise: str) -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else otherwise


def main() -> None:
    report = Report.start(
        "differences",
        "Learning how two sets of 1,000,000 records differ",
        columns=["what", "bytes, ids", "deflated", "with advertisements, deflated", "asker CPU s", "teller CPU s"],
    )
    cases = [0, 10, 1_000] if report.quick else [0, 10, 1_000, 100_000]
    costs: dict[int, tuple[Cost, int]] = {}
    for different in cases:
        a, b = two_sets(different)
        cost, lacking, wanted = dialogue(set_of(a), set_of(b), seed=7)
        listed = Cost([*cost.told, *advertisements(lacking), *advertisements(wanted)])
        costs[different] = cost, listed.packed
        report.row(f"070, {different:,} differ", cost.size, cost.packed, listed.packed, cost.asker_s, cost.teller_s)
        requests = Cost([f"MayRequest('{record}')" for ids in (lacking, wanted) for record in ids.texts()]).packed
        report.row(f"070, {different:,} differ: requests for all of them, which follow", "", requests, "", "", "")
        if different in (0, 1_000):
            size, turns = negentropy_cost(a, b, lambda digest: int.from_bytes(digest[:6], "big"))
            report.row(f"negentropy, {different:,} differ, {turns} turns", size, "", "", "", "")
            if different:
                ratio = size / cost.size
                report.at_least(
                    "1,000 differ: negentropy takes so many times the bytes, ids only", wanted=10, got=ratio, unit="×"
                )
                ways_compared(report, a, b, newest=False)
    ordered = random_ids(RECORDS, seed=9)  # the newest stand last: their order is their time
    a, b = ordered.take(slice(0, RECORDS - 500)), ordered.without(ordered.take(slice(RECORDS - 1_000, RECORDS - 500)))
    cost, *_ = dialogue(set_of(a), set_of(b), seed=5)
    report.row("070, newest 1,000 differ", cost.size, cost.packed, "", cost.asker_s, cost.teller_s)
    newest = cost.packed
    size, turns = negentropy_cost(a, b, lambda digest: int.from_bytes(digest[:6], "big"))
    report.row(f"negentropy, newest 1,000 differ, {turns} turns", size, "", "", "", "")
    ways_compared(report, a, b, newest=True)
    report.at_most("newest 1,000 differ, ids only, deflated", wanted=40_000, got=newest, unit=" B")
    report.at_most("nothing new: both summaries and empty requests", wanted=300, got=costs[0][0].size, unit=" B")
    report.at_most("10 differ, with their advertisements, deflated", wanted=3_000, got=costs[10][1], unit=" B")
    report.at_most("1,000 differ, with their advertisements, deflated", wanted=100_000, got=costs[1_000][1], unit=" B")
    if 100_000 in costs:
        report.at_most(
            "100,000 differ, with their advertisements, deflated", wanted=8e6, got=costs[100_000][1], unit=" B"
        )
    worst = max(costs[1_000][0].asker_s, costs[1_000][0].teller_s)
    report.at_most("1,000 differ, CPU of either side over open columns", wanted=1.0, got=worst, unit=" s")
    kept, count = option("--stores", ""), int(option("--laces", "20000" if report.quick else "1000000"))
    with tempfile.TemporaryDirectory() as made:
        laces(report, Path(kept or made), count)
    report.note(
        "Two laces: preface, setup, hello and requests are counted; the CPU of the dialling side is its whole process,"
        " and that of the serving side includes its start where 1,000 differ."
    )
    report.note(
        "Standard mode: `then` is one run on a machine of the same kind, before sets were shared; bytes do not depend"
        " on the machine, seconds do."
    )
    report.note("Bytes are those of the fact lines of both directions; advertisements have no fields.")
    report.note(
        "negentropy is our own implementation of its version 1, byte for byte; its ids are 32 bytes and binary."
    )
    report.finish()


if __name__ == "__main__":
    main()
