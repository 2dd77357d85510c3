"""What an exchange between two laces of one process costs: transfer, nothing to do, reconciliation bytes, latency.

    python bench/exchange.py [--quick]

Every figure is measured in this run on stores made for it; the peers are our own import of the same bundle, a full
listing of the same sets, and the first exchange of the same link.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from report import Report

from lace.iltp.writer import encode_facts
from lace.intake.bundles import import_bundles
from lace.interlace import inputs as given
from lace.interlace.claims.advertisement import canonical_listing
from lace.interlace.events import Received, Sent
from lace.limits import ExchangeLimits
from lace.notation.tai import TAI
from lace.policy.exposure import expose_all
from lace.policy.select import select_all
from lace.records.keys import SigningKey
from lace.records.model import Blob, Plex
from lace.records.validate import validate
from lace.records.write import encode_record
from lace.runtime.local.local import LocalExchange, exchange
from lace.runtime.local.party import UNBOUNDED, Party, local_terms
from lace.store import open_store
from lace.store.base import RecordStore
from lace.store.bundle import BundleWriter

KEY = SigningKey(bytes(31) + b"\x05")
OTHER = SigningKey(bytes(31) + b"\x09")
BATCH = 4_096


def plexes(first: int, count: int, size: int = 640) -> Iterator[Plex]:
    """Records of about a kilobyte when sealed."""
    for number in range(first, first + count):
        data = (b"%012d" % number) * (size // 12)
        tai = TAI.from_ns((1_640_995_200 + number) * 10**9)
        yield Plex(group="u", app="ding", name=f"links/{number}", tai=tai, blob=Blob(data))


def fill(store: RecordStore, first: int, count: int) -> None:
    """Unsealed small records, as many as asked for."""
    stored = (validate(encode_record(plex)) for plex in plexes(first, count, size=24))
    while batch := list(islice(stored, BATCH)):
        store.put(batch)


def party(store: RecordStore, key: str = "", **terms: Any) -> Party:
    return Party(store=store, terms=local_terms(select_all(), (expose_all(),), **terms), cursor_key=key)


def timed(work: object) -> float:
    started = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - started


def transfer(report: Report, folder: Path, count: int) -> None:
    """One side empty: sealed 1 KB records, verified and durable, against the import of the same bundle."""
    bundle = folder / "records.bundle"
    with BundleWriter(bundle) as writer:
        for plex in plexes(0, count):
            writer.write(encode_record(KEY.seal(plex)))
    importing = exchanging = float("inf")
    for turn in range(1 if report.quick else 3):  # the machine is shared: the best of alternating turns, for both
        with (
            open_store(folder / f"a{turn}.lace", create=True) as first,
            open_store(folder / f"b{turn}.lace", create=True) as second,
        ):
            importing = min(importing, timed(lambda first=first: import_bundles(first, [bundle])))
            sides = party(first), party(second)
            exchanging = min(exchanging, timed(lambda sides=sides: exchange(*sides)))
            assert second.stat().records == count
    report.row(f"import a bundle, {count:,} sealed records", count / importing, "records/s", 1.0)
    report.row(
        f"exchange in process, {count:,} sealed records", count / exchanging, "records/s", importing / exchanging
    )
    report.at_least("an exchange in process reaches 0.7 of the import rate", wanted=0.7, got=importing / exchanging)


def nothing_to_do(report: Report, folder: Path, sizes: Iterable[int]) -> None:
    """Both sides equal: the first exchange of a link, and the second."""
    ratio = 0.0
    for size in sizes:
        with (
            open_store(folder / f"c{size}.lace", create=True) as one,
            open_store(folder / f"d{size}.lace", create=True) as two,
        ):
            fill(one, 0, size)
            fill(two, 0, size)
            parties = party(one, "d"), party(two, "c")
            first = timed(lambda parties=parties: exchange(*parties))
            second = timed(lambda parties=parties: exchange(*parties))
        ratio = second / first
        report.row(f"nothing to do, {size:,} records on each side", first, "s", 1.0)
        report.row(f"  again on the same link, {size:,} records", second, "s", ratio)
    report.at_most("a second exchange with nothing new takes 0.2 of the first", wanted=0.2, got=ratio)


class Counting:
    """Counts the bytes that reconciliation would put on a wire."""

    def __init__(self, running: LocalExchange) -> None:
        self.reconciliation_bytes = 0
        for side in running.sides:
            self._watch(side.session)

    def _watch(self, session: Any) -> None:
        put_listing, receive = session.put_listing, session.machine.receive

        def put_counted(batch: Any, source: str) -> None:
            self.reconciliation_bytes += len(canonical_listing(batch, source, 1024))
            put_listing(batch, source)

        def receive_counted(item: Any, now_ns: int) -> Any:
            if isinstance(item, given.FactsReceived):
                names = {fact.predicate.name for fact in item.facts}
                if any("Advertise" in name and not name.startswith("Hello") for name in names):
                    self.reconciliation_bytes += len(encode_facts(item.facts))
            return receive(item, now_ns)

        session.put_listing, session.machine.receive = put_counted, receive_counted


def reconciliation(report: Report, folder: Path, count: int, differences: int) -> None:
    """Few differences between large sets, plan without fields: partitions against full listings."""
    ratio = reconciliation_ratio(report, folder, count, differences, proven=True)
    if not report.quick:  # with few records the summaries weigh as much as the listing
        report.at_most("partitions take 0.05 of the bytes of full listings", wanted=0.05, got=ratio)
        # Without proven keys labels are shorter, so a full listing is; the summaries are what they are (050-PART-03).
        reconciliation_ratio(report, folder, count, differences, proven=False)


def reconciliation_ratio(report: Report, folder: Path, count: int, differences: int, *, proven: bool) -> float:
    """Bytes of reconciliation by partitions over those by full listings."""
    limits = ExchangeLimits(max_total_transferred_bytes=UNBOUNDED, max_advertisement_records_listed=2 * count)
    found = {}
    for name, threshold in (("full listing", 1 << 40), ("partitions", 0)):
        place = folder / f"{name.replace(' ', '-')}-{proven}"
        place.mkdir()
        with open_store(place / "a.lace", create=True) as first, open_store(place / "b.lace", create=True) as second:
            fill(first, 0, count)
            fill(second, differences // 2, count)
            keys = (KEY.verifier, OTHER.verifier) if proven else (None, None)
            sides = [
                replace(party(store, partition_threshold_bytes=threshold, limits=limits), here=key)
                for store, key in zip((first, second), keys, strict=True)
            ]
            with LocalExchange(*sides, is_direct=False) as running:
                counted = Counting(running)
                running.start()
                running.run()
                assert all(result.fixed_point for result in running.results())
            assert first.stat().records == second.stat().records == count + differences // 2
        found[name] = counted.reconciliation_bytes
    ratio = found["partitions"] / found["full listing"]
    label = f"{count:,} records, {differences} differences, {'proven keys' if proven else 'no keys'}"
    report.row(f"reconciliation by full listing, {label}", found["full listing"], "bytes", 1.0)
    report.row(f"reconciliation by partitions, {label}", found["partitions"], "bytes", ratio)
    return ratio


def latency(report: Report, folder: Path, size: int, samples: int) -> None:
    """An open exchange at rest: from a commit on one side to its arrival on the other."""
    with (
        open_store(folder / f"e{size}.lace", create=True) as first,
        open_store(folder / f"f{size}.lace", create=True) as second,
    ):
        fill(first, 0, size)
        fill(second, 0, size)
        moments: dict[tuple[int, type], float] = {}

        def hear(side: int, event: object) -> None:
            moments[side, type(event)] = time.perf_counter()

        leaving: list[float] = []
        arriving: list[float] = []
        sides = party(first, is_open=True), party(second, is_open=True)
        with LocalExchange(*sides, on_event=hear) as running:
            running.start()
            running.run()
            for plex in plexes(10**9, samples):
                first.put([validate(encode_record(plex))])
                committed = time.perf_counter()
                running.tell(0, given.LocalChanged())
                running.run()
                leaving.append(moments[0, Sent] - committed)
                arriving.append(moments[1, Received] - committed)
    for what, times in (("to its way", leaving), ("to arrival", arriving)):
        times.sort()
        for name, at in (("p50", 0.5), ("p99", 0.99)):
            figure = times[int(len(times) * at)] * 1e3
            report.row(f"open exchange, commit {what}, {name}, {size:,} records", figure, "ms", 1.0)
    on_its_way = leaving[len(leaving) // 2] * 1e3
    report.at_most(f"a new record is on its way at {size:,} records (p50)", wanted=10.0, got=on_its_way, unit=" ms")


def main() -> None:
    report = Report.start(
        "exchange", "Exchanges between two laces of one process", columns=["what", "figure", "unit", "ratio"]
    )
    quick = report.quick
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        transfer(report, folder, 8_000 if quick else 100_000)
        nothing_to_do(report, folder, (500, 1_000, 2_000, 4_000) if quick else (12_500, 25_000, 50_000, 100_000))
        reconciliation(report, folder, *((6_000, 10) if quick else (100_000, 100)))
        for size in (1_000, 4_000) if quick else (10_000, 100_000, 1_000_000):
            latency(report, folder, size, samples=20 if quick else 200)
    report.note("records are verified and durable on both sides; small records are unsealed and about 300 bytes")
    report.finish()


if __name__ == "__main__":
    main()
