"""Rules of peers in a process of their own: the same answers as here, and an end when there must be one."""

from __future__ import annotations

import ast
import os
import random
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from executors.cases import NAMES, read_case
from interlace.pair import ALL, VERIFIER_A, group_module, hash_of, plex
from lace.datalog import engine
from lace.errors import EvaluationStopped, LaceError, LimitExceeded
from lace.interlace.claims.advertisement import Advertisement
from lace.interlace.claims.partitions import ClaimChanges
from lace.interlace.host import Call
from lace.interlace.setup.hello import NO_FIELDS
from lace.interlace.setup.terms import Terms
from lace.limits import MIB
from lace.policy.compile import agree
from lace.policy.exposure import expose_all
from lace.policy.operand import Module
from lace.policy.select import select_coordinate
from lace.porcelain.ruletemplates import fill, templates
from lace.records.validate import validate
from lace.runtime.rules.evaluator import StoreEvaluator
from lace.runtime.rules.guesthouse import GuestHouse, GuestLimits
from lace.runtime.rules.guests import GuestEvaluator
from lace.runtime.rules.policy import LinkPolicy, prepare
from lace.store import open_store
from lace.store.base import RecordStore
from lace.store.memory import MemoryStore
from runtime.test_evaluator import MODULES, runtime, wanted
from siege import speech

ROOT = Path(__file__).resolve().parents[2]
RECORDS = [plex(f"n{n}", group="uvw"[n % 3], app="ab"[n % 2]) for n in range(12)]
TERMS = Terms(module=ALL, exposures=(expose_all(),))
AT_ONCE = GuestLimits(first_rows=0, penalty_s=0.0)
NOTHING = ClaimChanges([], [])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordStore]:
    opened = open_store(tmp_path / "x.lace", create=True)
    opened.put([validate(record) for record in RECORDS[:4]])
    yield opened
    opened.close()


def guest(store: RecordStore, module: Module, limits: GuestLimits, house: GuestHouse | None = None) -> GuestEvaluator:
    house = house or GuestHouse(getattr(store, "path", None), limits)
    return GuestEvaluator(store, policy_of(module), house, "192.0.2.1")


def policy_of(module: Module) -> LinkPolicy:
    return prepare(wanted(agree(module, ALL), NO_FIELDS, index=1), TERMS)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_a_process_of_its_own_answers_as_we_do_whatever_becomes_of_it(seed: int, store: RecordStore) -> None:
    draw = random.Random(seed)
    module = draw.choice([module for module in MODULES if module.id != ALL.id])
    house = GuestHouse(getattr(store, "path", None), AT_ONCE)
    far, near = guest(store, module, AT_ONCE, house), StoreEvaluator(store, policy_of(module))
    claims: dict[str, Advertisement] = {}
    send: set[str] = set()
    for step in range(6):
        record = draw.choice(RECORDS)
        if draw.random() < 0.5:
            store.put([validate(record)])
        else:
            store.delete(hash_of(record))
        claim = Advertisement(str(hash_of(draw.choice(RECORDS))), ())
        added = [] if claim.hash in claims else [claim]
        claims[claim.hash] = claim
        expected = near.evaluate(runtime(step), ClaimChanges(added, []), Call())
        found = far.evaluate(runtime(step), ClaimChanges(added, []), Call())
        assert found == expected
        assert far.cursor == near.cursor
        assert set(far.requestable) == set(near.requestable)
        send = (send | set(found.send_added)) - set(found.send_removed)
        if draw.random() < 0.5:
            house.leave(house.rooms[0])  # somebody else needed it: it begins anew
    assert far.requestable_with(list(claims.values()), "Opq_p", Call()) == near.requestable_with(
        list(claims.values()), "Opq_p", Call()
    )
    house.close()


@pytest.mark.parametrize(("cores", "places"), [(None, 1), (1, 1), (2, 1), (3, 2), (64, 4)])
def test_one_core_is_left_to_the_event_loop(cores: int | None, places: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert GuestHouse(None, threads=4).places == places


def test_rules_that_ask_for_little_never_leave(store: RecordStore) -> None:
    house = GuestHouse(getattr(store, "path", None))
    evaluator = guest(store, group_module("u"), GuestLimits(), house)
    assert evaluator.evaluate(runtime(0), NOTHING, Call()).send_added
    assert house.rooms == []


def test_our_own_rules_never_leave_whoever_brings_them(store: RecordStore) -> None:
    house = GuestHouse(getattr(store, "path", None), AT_ONCE)
    assert guest(store, ALL, AT_ONCE, house).evaluate(runtime(0), NOTHING, Call()).send_added
    assert house.rooms == []


def test_fuel_ends_what_joins_for_ever_and_it_is_not_tried_again_at_once(store: RecordStore) -> None:
    limits = GuestLimits(first_rows=1 << 12, max_rows=1 << 18)
    house = GuestHouse(getattr(store, "path", None), limits)
    evaluator = guest(store, speech.joins(), limits, house)
    with pytest.raises(LimitExceeded, match="max_peer_rows_touched"):
        evaluator.evaluate(runtime(0), NOTHING, Call())
    with pytest.raises(LimitExceeded, match="a moment ago"):
        evaluator.evaluate(runtime(0), NOTHING, Call())
    other = guest(store, group_module("u"), limits, house)
    assert other.evaluate(runtime(0), NOTHING, Call()).send_added
    house.close()


def test_memory_has_an_end(store: RecordStore) -> None:
    limits = GuestLimits(first_rows=1 << 12, base_held_bytes=1 << 20)
    house = GuestHouse(getattr(store, "path", None), limits)
    with pytest.raises(LimitExceeded):
        guest(store, speech.products(), limits, house).evaluate(runtime(0), NOTHING, Call())
    house.close()


def test_processor_time_has_an_end(store: RecordStore) -> None:
    limits = GuestLimits(first_rows=1 << 12, max_rows=1 << 40, max_cpu_s=0.1)
    house = GuestHouse(getattr(store, "path", None), limits)
    with pytest.raises(EvaluationStopped, match="processor time"):
        guest(store, speech.joins(), limits, house).evaluate(runtime(0), NOTHING, Call())
    house.close()


def test_work_that_nobody_waits_for_is_killed_and_so_is_what_waits_behind_it(store: RecordStore) -> None:
    limits = GuestLimits(first_rows=1 << 12, max_rows=1 << 40, max_cpu_s=1e9, processes=1)
    house = GuestHouse(getattr(store, "path", None), limits)
    stopped: list[str] = []

    def run(call: Call, module: Module) -> None:
        try:
            guest(store, module, limits, house).evaluate(runtime(0), NOTHING, call)
        except EvaluationStopped as error:
            stopped.append(str(error))

    calls = [Call(), Call()]
    threads = [
        threading.Thread(target=run, args=(call, speech.joins(100 + number))) for number, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    while not any(room.is_busy for room in house.rooms):
        pass
    for call in calls:
        call.cancel()
    for thread in threads:
        thread.join(60)
    assert len(stopped) == 2
    assert house.rooms == []
    house.close()


def test_a_store_without_a_file_keeps_its_guests_here() -> None:
    memory = MemoryStore()
    memory.put([validate(record) for record in RECORDS])
    house = GuestHouse(None, AT_ONCE)
    assert guest(memory, group_module("u"), AT_ONCE, house).evaluate(runtime(0), NOTHING, Call()).send_added
    assert house.rooms == []


def honest_selectors() -> list[Module]:
    """The templates of `lace rules`, the helpers, every policy of the docs, the bench and the evaluator's tests."""
    values = {"group": "u", "app": "a", "admin": VERIFIER_A, "count": "100"}
    texts = [fill(template.name, values)["select.lace"] for template in templates()]
    helpers = [select_coordinate("//u//"), select_coordinate("//u//a//n1"), group_module("u")]
    return [*map(Module.author, [*texts, *written_policies()]), *helpers, *MODULES]


def written_policies() -> list[str]:
    """Selectors that stand in pages of the documentation and in files of the bench."""
    fenced = re.compile(r"^```[a-z]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
    pages = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
    found = [block for page in pages for block in fenced.findall(page.read_text(encoding="utf-8"))]
    for file in sorted((ROOT / "bench").rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        found += [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and type(node.value) is str]
    rules = ["\n".join(re.findall(r"^[ >$.]*([A-Z]\w*\(.*\.)[ ]*$", text, re.MULTILINE)) for text in found]
    missing = "\nSelectAdvertised(P,S) :- Advertised(P,S)."
    whole = [text if "SelectAdvertised(" in text else text + missing for text in dict.fromkeys(rules)]
    return [text for text in whole if _is_selector(text)]


def _is_selector(text: str) -> bool:
    if "SelectHave(" not in text:
        return False
    try:
        Module.author(text)
    except LaceError:  # a transcript, a piece of one, or prose
        return False
    return True


def test_policies_of_the_documentation_and_the_bench_are_found() -> None:
    assert len(written_policies()) >= 3


@pytest.mark.parametrize("name", NAMES)
def test_programs_of_the_case_suite_stay_below_the_first_fuel(name: str) -> None:
    case, limits = read_case(name), GuestLimits()
    if case.error:
        return
    fuel = replace(case.limits, max_rows_touched=limits.first_rows, max_held_bytes=limits.first_held_bytes)
    engine.evaluate(case.check(), case.base_facts(), limits=fuel)


def test_honest_selectors_never_need_more_than_the_first_fuel(tmp_path: Path) -> None:
    """Over 2,000 records; the same fuel ends every hostile program of the siege."""
    store = open_store(tmp_path / "x.lace", create=True)
    store.put([validate(plex(f"n{n}", group="uvw"[n % 3], app="ab"[n % 2])) for n in range(2_000)])
    house = GuestHouse(getattr(store, "path", None))
    for module in honest_selectors():
        guest(store, module, house.limits, house).evaluate(runtime(0), NOTHING, Call())
    assert house.rooms == []
    assert not house.costly
    store.close()


def test_processes_that_may_grow_large_evaluate_one_at_a_time(store: RecordStore) -> None:
    """Which rules are refused never hangs on how many are evaluated; how many are, on what they may hold together."""
    limits = GuestLimits()
    held = limits.held_bytes(100_000)
    assert limits.places(limits.process_bytes(limits.held_bytes(200), 200)) == limits.processes
    assert limits.places(limits.process_bytes(held, 100_000)) == 1
    assert limits.places(limits.process_bytes(limits.held_bytes(10_000_000), 10_000_000)) == 1
    # A siege allows 256 MiB: what is tried here, and the process beside it, with the modules that it loads.
    assert limits.held_bytes(100_000, is_first=True) + limits.process_bytes(held, 100_000) + 48 * MIB <= 256 * MIB

    house = GuestHouse(getattr(store, "path", None), limits)
    first = house.free_room(None, 1)
    assert first is not None
    first.is_busy = True
    assert house.free_room(None, 1) is None
    assert house.free_room(None, 2) is not None
    first.is_busy = False
    house.close()


def test_a_process_that_was_killed_counts_until_it_is_gone(store: RecordStore) -> None:
    """So there are never more of them in memory than may evaluate, however fast guests come and go."""
    house = GuestHouse(getattr(store, "path", None), replace(AT_ONCE, processes=1))
    house.leaving = 1
    assert house.free_room(None, 1) is None
    house.leaving = 0
    room = house.free_room(None, 1)
    assert room is not None
    assert house.free_room(None, 1) is None  # the idle one has to go first
    assert house.rooms == []
    eventually(lambda: not house.leaving)
    assert is_gone(room.worker.pid)
    assert house.free_room(None, 1) not in (None, room)
    house.close()


def is_gone(pid: int) -> bool:
    """Whether the system has forgotten a process: it is not even a zombie."""
    return not Path(f"/proc/{pid}").exists()


def eventually(found: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not found():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_an_idle_process_that_the_system_kills_is_reaped_at_once_and_another_one_answers(store: RecordStore) -> None:
    limits = GuestLimits(first_rows=0)
    house = GuestHouse(getattr(store, "path", None), limits)
    far = guest(store, group_module("u"), limits, house)
    before = far.evaluate(runtime(0), NOTHING, Call())
    assert before.send_added
    pid = house.rooms[0].worker.pid
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: is_gone(pid))
    assert house.rooms == []
    store.put([validate(plex("one more", group="u"))])
    assert len(far.evaluate(runtime(1), NOTHING, Call()).send_added) == 1
    house.refuse_again(far.policy.peer_rules)  # they are not refused: they did nothing
    far.close()
    house.close()


@pytest.mark.parametrize("times", [1, 2])
def test_a_kill_from_outside_is_no_fault_of_the_rules_and_they_are_tried_once_more(
    times: int, store: RecordStore
) -> None:
    limits = GuestLimits(first_rows=0, max_rows=1 << 40, max_cpu_s=600.0)
    house = GuestHouse(getattr(store, "path", None), limits)
    far = guest(store, speech.joins(200), limits, house)
    call, found = Call(), list[str]()

    def evaluate() -> None:
        try:
            far.evaluate(runtime(0), NOTHING, call)
        except EvaluationStopped as error:
            found.append(str(error))

    thread = threading.Thread(target=evaluate)
    thread.start()
    pids: set[int] = set()
    for _ in range(times):

        def another() -> bool:
            return any(room.is_busy and room.worker.pid not in pids for room in house.rooms)

        eventually(another)
        pid = next(room.worker.pid for room in house.rooms if room.worker.pid not in pids)
        pids.add(pid)
        os.kill(pid, signal.SIGKILL)
        eventually(lambda pid=pid: is_gone(pid))
    if times == 1:
        eventually(lambda: any(room.is_busy and room.worker.pid not in pids for room in house.rooms))
        call.cancel()  # another process is at it: that was to be seen
    thread.join(30)
    assert found == (
        ["nobody waits for this evaluation any more"]
        if times == 1
        else ["the process of a peer's rules was ended from outside by signal 9, twice"]
    )
    house.refuse_again(far.policy.peer_rules)
    far.close()
    house.close()
