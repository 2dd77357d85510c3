"""Exchanges with peers elsewhere, from a plain program."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

import lace
from interop.harness import PATIENCE_S
from lace.errors import InvalidText, TransportError
from lace.interlace.events import FixedPoint
from lace.limits import SECOND_NS
from lace.porcelain.network import connect, serve
from lace.runtime.clock import SystemClock


def test_two_programs_exchange_over_a_socket(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/notes.sock"
    events: list[object] = []
    with lace.open(tmp_path / "a.lace", create=True) as far, lace.open(tmp_path / "b.lace", create=True) as near:
        far.put(b"one", group="u", app="a", name="1")
        far.put(b"two", group="v", app="a", name="2")
        near.put(b"three", group="u", app="a", name="3")
        with serve(far, address, expose="all") as bound:
            assert bound == [address]
            outcome = connect(
                near,
                address,
                select="//u",
                expose="selected",
                hooks=lace.Hooks(on_event=lambda _, event: events.append(event)),
            )
        assert outcome.is_complete
        assert near.get("//u//a//1") == b"one"
        assert far.get("//u//a//3") == b"three"
        assert not list(near.list("//v"))
        assert any(isinstance(event, FixedPoint) for event in events)
        with pytest.raises(TransportError):
            connect(near, address)


@pytest.mark.parametrize(
    ("horizon_s", "is_taken"), [(None, True), (86_400, False), (3_600, False), (400 * 86_400, True)]
)
def test_a_lace_dials_under_its_own_horizon(horizon_s: int | None, is_taken: bool) -> None:
    ahead = SystemClock().tai().plus_ns(300 * 86_400 * SECOND_NS)
    with lace.open(":memory:", horizon_s=None) as far, lace.open(":memory:", horizon_s=horizon_s) as near:
        far.put(b"far ahead", group="u", app="a", name="1", tai=ahead)
        with serve(far, "tcp:127.0.0.1:0", expose="all") as bound:
            outcome = connect(near, bound[0])
        assert bool(outcome.result.received_hashes) is is_taken
        assert bool(list(near.list("//u"))) is is_taken


def test_what_cannot_be_served_is_told_to_the_caller(tmp_path: Path) -> None:
    with lace.open(":memory:") as opened:
        with pytest.raises(TransportError), serve(opened, f"unix:{tmp_path}/no/such/folder.sock"):
            raise AssertionError("not reached")
        with pytest.raises(InvalidText), serve(opened, "http:x"):
            raise AssertionError("not reached")


@pytest.mark.parametrize("scheme", ["tcp", "ws"])
def test_port_0_is_any_free_port_for_who_serves_and_none_for_who_dials(scheme: str) -> None:
    with lace.open(":memory:") as far, lace.open(":memory:") as near:
        far.put(b"one", group="u", app="a", name="1")
        with serve(far, f"{scheme}:127.0.0.1:0", f"{scheme}:127.0.0.1:0", expose="all") as bound:
            assert len(set(bound)) == 2
            assert all(connect(near, address).is_complete for address in bound)
        assert near.get("//u//a//1") == b"one"
        with pytest.raises(InvalidText, match="1 to 65535"):
            connect(near, f"{scheme}:127.0.0.1:0")


def test_a_program_stands_between_two_servers_and_keeps_nothing(tmp_path: Path) -> None:
    with lace.open(":memory:") as first, lace.open(":memory:") as second:
        first.put(b"one", group="u", app="a", name="1")
        first.put(b"two", group="v", app="a", name="2")
        second.put(b"three", group="u", app="a", name="3")
        serving = [serve(one, "tcp:127.0.0.1:0", expose="all") for one in (first, second)]
        with serving[0] as here, serving[1] as there:
            outcomes = lace.relay(here[0], there[0], select="//u")
            assert all(outcome.is_complete for outcome in outcomes)
            again = lace.relay(here[0], there[0], select="//u")
        assert not any(outcome.result.received_hashes for outcome in again)
        assert second.get("//u//a//1") == b"one"
        assert first.get("//u//a//3") == b"three"
        assert not list(second.list("//v"))
        with pytest.raises(TransportError):
            lace.relay(here[0], there[0])


def test_a_program_without_asyncio_follows_a_peer(tmp_path: Path) -> None:
    with lace.open(tmp_path / "far.lace", create=True) as far, lace.open(tmp_path / "near.lace", create=True) as near:
        with (
            serve(far, f"unix:{tmp_path}/far.sock", expose="all") as (address,),
            serve(near, follow=[address], expose="all") as bound,
        ):
            assert bound == []
            for giver, taker in ((far, near), (near, far)):
                cursor = taker.cursor()
                record = giver.put(b"news", group="u", app="ding", name=str(giver is far))
                (change,) = islice(taker.changes(cursor, wait_s=PATIENCE_S), 1)
                assert change.added == (record,)
        assert far.stat().records == near.stat().records == 2
        with pytest.raises(InvalidText), serve(near, follow=["http:x"]):
            pass
