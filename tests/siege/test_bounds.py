"""The bounds of a siege by counts: pieces of work on the loop, bytes held before and after the cut, links begun."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import sys
import tempfile
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from interlace.pair import ALL, blob, config_of, group_module
from interop.harness import CLOCK, PATIENCE_S, serving, terms_of
from lace.iltp.reader import StreamReader
from lace.limits import SECOND_NS
from lace.policy.select import select_all
from lace.runtime.link.backlog import CLAIM_BYTES, LINE_FACTOR
from lace.runtime.link.hangup import HangUp
from lace.runtime.link.session import CheckResource, Session, checked
from lace.runtime.node.admission import AdmissionLimits
from lace.runtime.node.bounds import DriveLimits
from lace.runtime.node.links import OpenLink
from lace.runtime.node.metering import LinkRates
from lace.runtime.node.node import NodeLimits
from lace.transports.base import ByteStream
from lace.transports.dial import TransportOptions, dial
from lace.transports.pipe import PipeStream
from lace.transports.websocket import WebSocketStream
from siege import speech
from siege.bearings import Effort, OwnPulse, _shares, used_s, waited_s
from siege.scenes import SCHEMES, repertoire

ROOT = Path(__file__).resolve().parents[2]
CLAIMS = 3_000
LISTING = speech.listing(speech.bogus(number.to_bytes(4, "big")) for number in range(CLAIMS))


def test_a_long_listing_is_read_in_pieces_of_about_a_millisecond() -> None:
    """Whatever came at once: between two pieces the others have their turn."""
    reader = StreamReader()
    reader.receive(speech.PREFACE.encode() + LISTING)
    sizes = []
    while items := reader.read_block():
        sizes.append(sum(getattr(item, "size", 0) for item in items))
    assert sum(sizes) == len(LISTING) - 1
    assert max(sizes) <= 2 * (1 << 15)
    assert len(sizes) >= len(LISTING) // (2 << 15)


def test_rules_of_a_peer_are_asked_to_be_read_and_never_read_by_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither those that it names at once nor those that it sent before others."""
    first, second = group_module("a"), group_module("b")
    session = Session(config_of(1, select_all()))
    session.start(0)
    texts = [f"🧩: {module.id} lacegram\n{module.text}\n\n" for module in (first, second)]
    named = f"ExchangeOperand('0','{first.id}','{speech.SOURCE}','selector')\n\n"
    session.receive_data((speech.PREFACE + "".join(texts) + named).encode(), 0)
    asked = []

    def never(*_: object, **__: object) -> None:
        raise AssertionError("read where others wait")

    while True:
        wanted = [one.resource for one in session.requests() if isinstance(one, CheckResource)]
        if not wanted:
            break
        asked += [resource.id for resource in wanted]
        answers = [checked(resource, session.terms.engine_limits) for resource in wanted]
        with monkeypatch.context() as patched:
            patched.setattr("lace.interlace.setup.agreement.Module.receive", never)
            for answer in answers:
                session.resource_checked(answer, 0)
    assert asked == [first.id, second.id, first.id]
    assert session.outcome is None
    assert session.machine.phase.value != "closed"


def test_a_listing_counts_while_it_is_read_and_nothing_of_it_after_the_cut(tmp_path: Path) -> None:
    async def run() -> tuple[int, int, int]:
        limits = NodeLimits(store_poll_s=0.02, shutdown_grace_s=1.0)
        async with serving([blob(b"one")], tmp_path, "tcp", terms_of(select_all()), limits=limits) as server:
            strangers = server.node.strangers
            stream = await dial(server.address, TransportOptions(clock=CLOCK.tai))
            await stream.send(speech.opening() + LISTING[:-1])  # its block is not at its end
            async with asyncio.timeout(PATIENCE_S):
                while not any(_held(link) >= LINE_FACTOR * (len(LISTING) - 1) for link in server.node.links):
                    await asyncio.sleep(0.01)
            held = sum(map(_held, server.node.links))
            await stream.send(LISTING[-200:].split(b"\n", 1)[1][:-1])  # the budget is told before more is read
            async with asyncio.timeout(PATIENCE_S):
                while sum(budget.held for budget in strangers) < held:
                    await asyncio.sleep(0.01)
            stream.abort()
            await server.next_outcome()
            return held, sum(budget.held for budget in strangers), sum(budget.holders for budget in strangers)

    held, left, holders = asyncio.run(run())
    assert held >= CLAIMS * CLAIM_BYTES * 0.9  # as much as its claims will take, before they are claims
    assert (left, holders) == (0, 0)


def _held(link: OpenLink) -> int:
    return link.driver.held_bytes


def test_nothing_is_begun_for_a_peer_that_left_while_it_waited_for_a_place(tmp_path: Path) -> None:
    async def run() -> int:
        limits = NodeLimits(max_links=1, max_links_per_peer=8, yield_after_s=60.0, store_poll_s=0.02)
        async with serving([blob(b"one")], tmp_path, "tcp", terms_of(ALL), limits=limits) as server:
            first = await dial(server.address, TransportOptions(clock=CLOCK.tai))
            await first.send(speech.PREFACE.encode())
            async with asyncio.timeout(PATIENCE_S):
                while not server.node.links:
                    await asyncio.sleep(0.01)
            late = [await dial(server.address, TransportOptions(clock=CLOCK.tai)) for _ in range(3)]
            async with asyncio.timeout(PATIENCE_S):
                while len(server.node.waiting) < len(late):
                    await asyncio.sleep(0.005)
                for one in late:
                    await one.send(speech.opening() + b"\n\n")
                    await one.close()
                first.abort()
                while len(server.node.waiting):
                    await asyncio.sleep(0.01)
            return server.node.metrics.get("connections_total", "accepted")

    assert asyncio.run(run()) == 1


@pytest.mark.parametrize("scheme", ["tcp", "ws"])
def test_what_a_flood_left_behind_is_not_read_to_its_end(tmp_path: Path, scheme: str) -> None:
    flood = b"# nothing\n\n" * 2_000

    async def run() -> tuple[int, float, str]:
        options = {"drive_limits": DriveLimits(leftover_s=0.0), "limits": NodeLimits(store_poll_s=0.02)}
        async with serving([blob(b"one")], tmp_path, scheme, terms_of(ALL), **options) as server:
            stream = await dial(server.address, TransportOptions(clock=CLOCK.tai))
            await stream.send(speech.opening() + b"\n\n")
            async with asyncio.timeout(PATIENCE_S):
                while not server.node.links:
                    await asyncio.sleep(0.01)
            driver = server.node.links[0].driver
            reading = asyncio.create_task(_read_on(stream))  # else the kernel would tell the server, and drop it all
            sent = 0
            with contextlib.suppress(TimeoutError):  # sooner or later the server reads no more for a while
                while sent < 64 * len(flood):
                    async with asyncio.timeout(0.2):
                        await stream.send(flood)
                    sent += len(flood)
            reading.cancel()
            _hang_up(stream)
            outcome = await server.next_outcome()
            return sent, driver.meter.used["bytes"], outcome.abort

    sent, read, abort = asyncio.run(run())
    assert sent >= 4 * len(flood)
    assert read < 2 * len(flood)  # what was received already is three times that
    assert abort


async def _read_on(stream: ByteStream) -> None:
    while await stream.receive():
        pass


def _hang_up(stream: object) -> None:
    """As when a process ends: nothing more is said, and what was said before still arrives."""
    assert isinstance(stream, PipeStream | WebSocketStream)
    transport = stream.writer.transport if isinstance(stream, PipeStream) else stream.connection.transport
    transport.close()


@pytest.mark.parametrize("pieces", [0, 1, 64])
def test_what_a_peer_says_at_the_end_is_read_however_slow_we_are(pieces: int) -> None:
    gone = Gone()
    assert not any(gone.is_given_up() for _ in range(pieces))
    assert gone.lost == 0


def test_what_was_left_is_read_for_a_moment_and_records_to_their_end() -> None:
    gone = Gone()
    assert not any(gone.is_given_up(holds_records=True) for _ in range(200))
    gone.step_ns = 0
    assert not any(gone.is_given_up() for _ in range(200))
    gone.step_ns = SECOND_NS
    gone.storing_bytes = 1
    assert not gone.is_given_up()
    gone.storing_bytes = 0
    gone.is_left = False
    assert not gone.is_given_up()
    gone.is_left = True
    assert gone.is_given_up()
    assert gone.lost == 1


@pytest.mark.parametrize(("sizes", "is_over"), [([100_000, 100_000], False), ([100_000] * 3, True), ([300_000], True)])
def test_few_pieces_are_much_if_they_are_long(sizes: list[int], is_over: bool) -> None:
    """A listing to which there will be no answer: one message after the other of it."""
    gone = Gone()
    assert gone.is_given_up(1) is False
    assert [gone.is_given_up(size) for size in sizes] == [False] * (len(sizes) - 1) + [is_over]
    assert gone.lost == is_over


@pytest.mark.parametrize(("wait_s", "is_over"), [(0.0, False), (0.3, False), (0.5, True)])
def test_of_an_overdrawn_link_that_was_left_nothing_is_read_but_for_a_moment(wait_s: float, is_over: bool) -> None:
    """Each piece waits until the account is level: sixty-four of them would last for ten seconds."""
    gone = Gone(int(wait_s * SECOND_NS))
    gone.waits = 9  # before it left: what it owed then is paid
    assert not gone.is_given_up()
    gone.waits += wait_s > 0
    assert gone.is_given_up() is is_over


class Gone:
    """A link whose peer hung up, a session that counts how often it was lost, a clock that goes on by steps."""

    def __init__(self, step_ns: int = SECOND_NS) -> None:
        self.is_left, self.storing_bytes, self.step_ns, self.lost, self._now_ns = True, 0, step_ns, 0, 0
        self.is_full = self.is_deaf = self.awaits_records = False
        self.machine = self
        self.waits = self.blocks_in = 0
        self.leftovers = HangUp(self, self, self, self, self, self, 0.4)  # type: ignore[arg-type]

    def is_given_up(self, size: int = 100, *, holds_records: bool = False) -> bool:
        return self.leftovers.are_given_up(size, holds_records=holds_records)

    @property
    def now_ns(self) -> int:
        self._now_ns += self.step_ns
        return self._now_ns

    def lose(self, now_ns: int) -> None:
        self.lost += 1


def test_of_a_peer_that_hears_nothing_more_next_to_nothing_is_read_unless_records_are_awaited() -> None:
    def read(gone: Gone, blocks_in: int = 13, pieces: int = 60) -> int:
        """How many pieces are taken before it is given up."""
        gone.blocks_in = blocks_in
        return next((number for number in range(1, pieces + 1) if gone.is_given_up()), 0)

    hears, deaf, awaits, stores, short = Gone(0), Gone(0), Gone(0), Gone(0), Gone(0)
    deaf.is_deaf = awaits.is_deaf = stores.is_deaf = short.is_deaf = True
    awaits.awaits_records, stores.storing_bytes = True, 1
    assert (read(hears), read(awaits), read(stores), read(short, 12)) == (0, 0, 0, 0)
    assert read(deaf) == 5  # the end of an exchange in lockstep takes one
    assert deaf.lost == 1
    assert read(short, 12, 200) == 16 * 1024 // 100 + 1 - 60  # what it left is long, though little of it was worked off
    awaits.awaits_records, stores.storing_bytes = False, 0
    assert (read(awaits), read(stores)) == (1, 5)  # what is read while records are stored is not held against it


def test_a_link_that_is_not_read_from_ends_a_moment_after_its_peer_has_gone() -> None:
    gone = Gone()
    look = gone.leftovers.are_unread_for_long
    assert not look(holds_records=False)  # it is read from: whoever reads will see
    gone.is_full, gone.is_left = True, False
    assert not look(holds_records=False)
    gone.is_left = True
    assert not look(holds_records=True)
    gone.storing_bytes = 1
    assert not look(holds_records=False)
    gone.storing_bytes = 0
    assert look(holds_records=False)
    assert gone.lost == 1
    early = Gone(0)
    early.is_full = True
    assert not any(early.leftovers.are_unread_for_long(holds_records=False) for _ in range(9))
    assert early.lost == 0


def test_of_a_flood_that_cannot_be_told_from_a_link_little_is_read() -> None:
    """Whoever was killed with bytes unsent has not hung up for us until all of them were read. What 32 such links may
    go on to say is what their loops need, five blocks each."""
    rates = LinkRates()
    assert rates.blocks.per_s == 5 * rates.loops.per_s
    assert 32 * rates.blocks.per_s <= 800


def test_strangers_may_hold_less_than_the_growth_that_a_siege_allows() -> None:
    assert 2 * AdmissionLimits().max_held_bytes <= 256 << 20


# --- the tool ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", ["", *sys.path, str(ROOT / "bench")])
    spec = importlib.util.spec_from_file_location("siege_tool", ROOT / "tools" / "siege.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "siege_tool", module)
    spec.loader.exec_module(module)
    return module


def found(tool: ModuleType, **values: object) -> object:
    whole = dict.fromkeys(("served", "tried"), 3) | dict.fromkeys(("end_s", "code", "limited"), 0)
    whole |= {"name": "a play", "scheme": "tcp", "calm_s": 0.1, "worst_s": 0.2, "busy_s": 0.01, "own_s": 0.01}
    return tool.Found(**(whole | {"stall_s": 0.5, "grown_mb": 1.0, "after_s": 0.0} | values))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, ""),
        ({"stall_s": 9.0, "here_s": 9.0}, ""),
        ({"served": 2}, "served 2 of 3"),
        ({"worst_s": 0.6}, "good peer 6.0 times slower"),
        ({"worst_s": 0.6, "burn_s": 0.5}, "good peer 6.0 times slower (1.2 beside as much work)"),
        ({"calm_s": 0.02, "worst_s": 0.12}, "good peer 6.0 times slower"),  # however short it is
        ({"busy_s": 0.06}, "loop held 60 ms"),
        ({"grown_mb": 300.0}, "memory +300 MB"),
        ({"after_s": 0.4}, "0.4 CPU s a second after the cut"),
        ({"end_s": 6.0}, "SIGTERM took 6.0 s, code 0"),
    ],
)
def test_a_control_explains_a_broken_bound_and_never_mends_it(
    values: dict[str, object], said: str, tool: ModuleType
) -> None:
    assert "; ".join(found(tool, **values).broken()) == said  # type: ignore[attr-defined]


def test_what_was_found_is_written_before_the_run_is_over_and_says_that_it_is_a_part(
    tool: ModuleType, tmp_path: Path
) -> None:
    tool.publish([found(tool)], 98, 1000, tmp_path)
    written = json.loads((tmp_path / "siege.json").read_text(encoding="utf-8"))
    assert [len(row) == len(written["columns"]) for row in written["rows"]] == [True]
    assert any("1 of 98 sieges" in note for note in written["notes"])
    tool.publish([found(tool)], 1, 1000, tmp_path)
    written = json.loads((tmp_path / "siege.json").read_text(encoding="utf-8"))
    assert not any("have not been run" in note for note in written["notes"])


def test_both_shares_are_published_by_the_letter_and_beside_as_much_other_work(
    tool: ModuleType, tmp_path: Path
) -> None:
    """Of two cores an army takes one: what that costs any exchange is told, and mends nothing."""
    results = [found(tool), found(tool, worst_s=0.6, burn_s=0.5), found(tool, worst_s=0.6, burn_s=0.11)]
    tool.publish([*results, found(tool, worst_s=0.6)], 4, 100_000, tmp_path)
    written = json.loads((tmp_path / "siege.json").read_text(encoding="utf-8"))
    assert [row[-1] == "holds" for row in written["rows"]] == [True, False, False, False]
    letter, beside = (claim for claim in written["claims"] if "within 5 times" in claim["text"])
    assert (letter["got"], letter["ok"]) == ("0.25", False)
    assert (beside["got"], beside["ok"]) == ("0.5", False)
    assert any("1 of 4 stay within 5 times (at most 6.0)" in note for note in written["notes"])
    assert any("100,000 records" in note for note in written["notes"])


@pytest.mark.parametrize(("only", "schemes"), [("tls: connect and", ["wss"]), ("frames: pings of", ["ws", "wss"])])
def test_every_play_runs_where_it_makes_sense_and_error_rows_in_turn(
    only: str, schemes: list[str], tool: ModuleType
) -> None:
    def planned(seed: int, only: str = "") -> list[tuple[str, str]]:
        chosen = SimpleNamespace(scheme=None, seed=seed, every=1)
        wanted = [scene for scene in repertoire().values() if only in scene.name]
        return [(scheme, scene.name) for scheme, scene in tool.planned(wanted, chosen)]

    assert [scheme for scheme, _ in planned(0, only)] == schemes
    rows = {name for name in repertoire() if name.startswith("error: ")}
    for scheme in SCHEMES:
        assert {name for seed in range(4) for where, name in planned(seed) if where == scheme} >= rows
    assert len(planned(0)) >= 200


@pytest.mark.parametrize(("code", "end_s", "is_told"), [(0, 1.0, False), (1, 1.0, True), (0, 6.0, True)])
def test_how_a_server_ended_counts_for_all_its_plays_and_is_told_with_its_last_words(
    code: int, end_s: float, is_told: bool, tool: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    garrison = tool.Garrison(10, Path())
    garrison.folder = tempfile.TemporaryDirectory()
    garrison.fortress = SimpleNamespace(stop=lambda: (code, end_s), log=lambda: "much\n" * 999 + "the last word")
    assert garrison.note(found(tool)) == []
    assert garrison.note(found(tool, name="another")) == []
    relieved = garrison.relieve()
    assert [one.name for one in relieved] == ["a play", "another"]
    assert [bool(one.broken()) for one in relieved] == [is_told] * 2
    assert ("the last word" in capsys.readouterr().out) is is_told
    assert garrison.relieve() == []


def test_what_the_machine_costs_is_counted_for_processes_that_are_there_and_not_for_others() -> None:
    import os

    assert waited_s(os.getpid()) >= waited_s(os.getpid(), main_thread=True) >= 0.0
    assert used_s(os.getpid()) > 0
    assert used_s(2**22 + 1) == waited_s(2**22 + 1) == 0.0
    assert _shares(Effort(2.5, 0).server) == [1.0, 1.0, 0.5]
    assert _shares(0.01) == []
    pulse = OwnPulse()
    pulse.start()
    pulse.is_over = True
    pulse.join(30)
    assert pulse.stall_s >= 0
