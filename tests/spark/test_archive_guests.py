"""Rules of strangers over an archive: others do not wait for them, they end with their links, and are refused again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from interlace.pair import ALL, EXPOSE_ALL, plex
from lace.errors import LaceError, LimitExceeded
from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.claims.advertisement import Advertisement
from lace.interlace.host import Call, Cancelled
from lace.interlace.setup.terms import Terms
from lace.policy.compile import agree
from lace.policy.operand import Module
from lace.records.validate import validate
from lace.runtime.host.host import LocalHost
from lace.runtime.rules.guesthouse import GuestLimits
from lace.spark.peer.peer import PeerBounds
from lace.store.memory import MemoryStore
from lace.thresholds import ArchiveThresholds
from runtime.test_host_contract import evaluate, listed, prepare
from siege import speech
from spark.archivehost import SMALL, FilledArchive, TestedHost

pytestmark = [pytest.mark.spark]

RECORDS = [plex(f"n{number}", group="uv"[number % 2]) for number in range(40)]
COUNTED = Module.author(
    "SelectAdvertised(P,S) :- Advertised(P,S).\n"
    "Same(P,Q) :- Field(P,'Group',_,G), Field(Q,'Group',_,G).\n"
    "SelectHave(P) :- Have(P), Field(P,'Name',_,'n1'), Same(P,_).\n"
    "SelectHave(P) :- Have(P), Same(P,Q), Field(Q,'Name',_,'n2').\n"
)
PATIENCE_S = 120.0


@pytest.fixture
def fill(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., FilledArchive]]:
    made: list[FilledArchive] = []

    def fresh(
        bounds: PeerBounds = SMALL, guest_limits: GuestLimits | None = None, *, on_spark: bool = False
    ) -> FilledArchive:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        archive = FilledArchive(spark, folder, bounds=bounds, guest_limits=guest_limits)
        archive.put([validate(record) for record in RECORDS])
        if on_spark:
            archive.archive.thresholds = ArchiveThresholds(in_process_bytes=0, held_rows=0)
        made.append(archive)
        return archive

    yield fresh
    for archive in made:
        archive.close()


def host_of(archive: FilledArchive, theirs: Module, ours: Module = ALL) -> TestedHost:
    """A link whose peer brings rules of its own."""
    host = TestedHost(archive, Terms(module=ours, exposures=EXPOSE_ALL))
    prepare(host, ours, theirs, local_index=place_of(ours, theirs))
    return host


def place_of(ours: Module, theirs: Module) -> int:
    """Which operand of the plan is ours."""
    return int(agree(ours, theirs).operands[0].module.id != ours.id)


def asking() -> asked.Evaluate:
    from differences.test_shared import questions

    return questions(ALL)[1]


class Waiting:
    """A call that is under way in a thread of its own."""

    def __init__(self, host: TestedHost) -> None:
        self.call = Call()
        self.found: list[given.Evaluated | BaseException] = []
        self._host = host
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.found.append(self._host.evaluate(asking(), self.call))
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            self.found.append(error)

    @property
    def result(self) -> given.Evaluated | BaseException:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "it goes on, though nobody waits for it"
        return self.found[0]


def until(is_so: Callable[[], bool]) -> None:
    last = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < last
        time.sleep(0.02)


@pytest.mark.parametrize("on_spark", [False, True], ids=["as shipped", "on Spark"])
@pytest.mark.parametrize("moves", [False, True], ids=["little fuel", "in a process"])
def test_a_guest_is_answered_as_by_a_lace(on_spark: bool, moves: bool, fill: Callable[..., FilledArchive]) -> None:
    store = MemoryStore()
    store.put([validate(record) for record in RECORDS])
    lace = LocalHost(store, Terms(module=ALL, exposures=EXPOSE_ALL))
    limits = GuestLimits(first_rows=0) if moves else None
    archive = fill(guest_limits=limits, on_spark=on_spark)
    host = host_of(archive, COUNTED)
    prepare(lace, ALL, COUNTED, local_index=place_of(ALL, COUNTED))
    expected, found = evaluate(lace).own, evaluate(host).own
    assert found.count == expected.count == 21
    assert listed(lace, expected) == listed(host, found)


@pytest.mark.parametrize("on_spark", [False, True], ids=["as shipped", "on Spark"])
def test_a_bomb_is_refused_by_its_rule_and_again_at_once_and_others_go_on(
    on_spark: bool, fill: Callable[..., FilledArchive]
) -> None:
    limits = GuestLimits(first_rows=1 << 12, max_rows=1 << 18, base_held_bytes=1 << 20)
    archive = fill(replace(SMALL, base_guest_rows=100, record_guest_rows=1), limits, on_spark=on_spark)
    bomb, head = (speech.follower(), "Near(") if on_spark else (speech.many_predicates(20), "X")
    with pytest.raises(LimitExceeded) as caught:
        evaluate(host_of(archive, bomb))
    assert caught.value.rule.removeprefix("o1_").removeprefix("o0_").startswith(head), "the rule is named"
    archive.peer.jobs.reads.clear()
    with pytest.raises(LimitExceeded, match="a moment ago"):
        evaluate(host_of(archive, bomb))
    assert not archive.peer.jobs.reads
    assert evaluate(host_of(archive, ALL)).own.count == len(RECORDS)


@pytest.mark.parametrize("on_spark", [False, True], ids=["as shipped", "on Spark"])
def test_others_are_served_beside_a_bomb_and_it_ends_with_its_last_link(
    on_spark: bool, fill: Callable[..., FilledArchive]
) -> None:
    """Three links bring one bomb without any bound but their patience; two of them go, then the third."""
    endless = GuestLimits(first_rows=1 << 12, max_rows=1 << 60, max_cpu_s=1e9, base_held_bytes=1 << 34)
    bounds = replace(SMALL, max_guest_seconds=1e9, base_guest_rows=1 << 60)
    archive = fill(bounds, endless, on_spark=on_spark)
    waiting = [Waiting(host_of(archive, speech.joins())) for _ in range(3)]
    house = archive.peer.house
    until(lambda: any(room.is_busy for room in house.rooms) or (on_spark and archive.peer.cluster._places == 1))
    assert evaluate(host_of(archive, ALL)).own.count == len(RECORDS)
    archive.peer.landing.put([plex("something new", group="v")])
    assert evaluate(host_of(archive, ALL)).own.count == len(RECORDS) + 1
    assert evaluate(host_of(archive, COUNTED)).own.count == 21
    assert not any(one.found for one in waiting)
    waiting[0].call.cancel()
    waiting[1].call.cancel()
    until(lambda: sum(len(one.found) for one in waiting) >= 1)  # the one of them that does not evaluate for all
    assert not waiting[2].found, "somebody waits for it still"
    waiting[2].call.cancel()
    assert all(isinstance(one.result, LaceError) for one in waiting)
    assert any(isinstance(one.result, Cancelled) for one in waiting)
    until(lambda: not house.rooms)


def test_a_job_on_the_cluster_ends_with_its_last_link(fill: Callable[..., FilledArchive]) -> None:
    archive = fill(replace(SMALL, max_guest_seconds=1e9, base_guest_rows=1 << 60), on_spark=True)
    rules = speech.rules(
        "Y(A,B) :- Field(P,A,_,_), Field(Q,B,_,_).\n"
        "Z(P,Q,R,S) :- Field(P,'Group',_,_), Field(Q,'Group',_,_), Field(R,'Group',_,_), Field(S,'Group',_,_), "
        "Field(T,'Group',_,_), Field(U,'Group',_,_), P != Q.\nBad(P) :- Z(P,_,_,P), Y(P,P).\n"
    )
    waiting = Waiting(host_of(archive, rules))
    tracker = archive.archive.spark.sparkContext.statusTracker()
    until(lambda: bool(tracker.getActiveJobsIds()) or bool(waiting.found))
    time.sleep(1.0)
    assert not waiting.found
    waiting.call.cancel()
    assert isinstance(waiting.result, Cancelled)
    until(lambda: not tracker.getActiveJobsIds())


def test_a_guest_has_the_cluster_for_so_long(fill: Callable[..., FilledArchive]) -> None:
    archive = fill(replace(SMALL, max_guest_seconds=0.0), on_spark=True)
    with pytest.raises(LimitExceeded) as caught:
        evaluate(host_of(archive, COUNTED))
    assert caught.value.limit == "max_guest_seconds"
    with pytest.raises(LimitExceeded, match="a moment ago"):
        evaluate(host_of(archive, COUNTED))


def test_what_to_request_is_asked_within_the_same_bounds(fill: Callable[..., FilledArchive]) -> None:
    limits = GuestLimits(first_rows=1 << 12, max_rows=1 << 16)
    archive = fill(guest_limits=limits)
    rules = Module.author(
        "SelectHave(P) :- Have(P).\nE(P,Q) :- Advertised(P,_), Advertised(Q,_).\n"
        "SelectAdvertised(P,S) :- Advertised(P,S), E(P,Q), E(Q,P).\n"
    )
    host = host_of(archive, rules)
    evaluate(host)
    claims = sorted(Advertisement(speech.bogus(bytes([number // 256, number % 256]))) for number in range(600))
    host.take_claims(asked.TakeClaims(added=claims, is_whole=True), Call())
    with pytest.raises(LimitExceeded) as caught:
        evaluate(host, max_requests=99, max_request_bytes=1 << 20)
    assert caught.value.limit == "max_peer_rows_touched"
