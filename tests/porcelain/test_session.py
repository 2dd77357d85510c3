"""The session without I/O: any pieces of bytes, a socket of the caller's, the clock of the lace, hostile peers."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lace
from lace.testing import MovableClock


def filled(count: int, size: int = 40, **options: object) -> lace.Lace:
    notes = lace.open(":memory:", **options)  # type: ignore[arg-type]  # keyword by keyword as lace.open has them
    with notes.batch() as batch:
        for number in range(count):
            batch.put(str(number).encode().ljust(size), group="u", app="a", name=str(number))
    return notes


def step(first: lace.Session, second: lace.Session, piece: int = 1 << 20) -> bool:
    """Everything that the first has to say, in pieces; whether there was anything."""
    moved = False
    while data := first.data_to_send():
        moved = True
        for start in range(0, len(data), piece):
            second.receive_data(data[start : start + piece])
    if first.outcome is not None and not second.is_over:
        second.receive_data(b"")
    return moved


def talk(first: lace.Session, second: lace.Session, piece: int = 1 << 20) -> None:
    while any([step(first, second, piece), step(second, first, piece)]):
        pass


def names(notes: lace.Lace) -> set[str]:
    return {row["Name"] for row in notes.list()}


@settings(max_examples=12, deadline=None)
@given(piece=st.integers(1, 700), here=st.integers(0, 40), there=st.integers(0, 40))
def test_two_sessions_exchange_whatever_pieces_the_bytes_come_in(piece: int, here: int, there: int) -> None:
    ours, theirs = filled(here), filled(there, size=50)
    with (
        lace.Session(ours, dialled=True, expose="all") as one,
        lace.Session(theirs, dialled=False, expose="all") as other,
    ):
        talk(one, other, piece)
        assert one.outcome is not None
        assert one.outcome.raise_for_status().status is lace.ExchangeStatus.CONVERGED
        assert other.outcome is not None
        assert len(one.outcome.result.received_hashes) == there
    assert {row.hash for row in ours.list()} == {row.hash for row in theirs.list()}


def test_a_program_without_a_thread_or_a_loop_exchanges_with_a_server_over_its_own_socket(tmp_path: Path) -> None:
    path = tmp_path / "hub.sock"
    with lace.open(tmp_path / "hub.lace", create=True) as hub, filled(500) as notes:
        kept = hub.put(b"of the hub", group="u", app="a", name="hub")
        with (
            lace.serve(hub, f"unix:{path}", expose="all", select="//u//a//"),
            socket.socket(socket.AF_UNIX) as connection,
            lace.Session(notes, dialled=True, select="//u//a//", expose="selected") as session,
        ):
            connection.connect(str(path))
            while not session.is_over:
                while data := session.data_to_send():
                    connection.sendall(data)
                connection.settimeout(session.next_timer)
                try:
                    session.receive_data(connection.recv(65536))
                except TimeoutError:
                    session.handle_timer()
            while data := session.data_to_send():
                connection.sendall(data)
            assert session.outcome is not None
            session.outcome.raise_for_status()
            assert session.outcome.result.received_hashes == (kept,)
        assert names(hub) == names(notes)
        assert len(names(hub)) == 501


def test_an_open_session_tells_what_changes_and_ends_when_it_is_asked_to() -> None:
    ours, theirs, heard = filled(3), filled(0), list[lace.Event]()
    with (
        lace.Session(ours, dialled=True, expose="all", is_open=True) as one,
        lace.Session(theirs, dialled=False, is_open=True, on_event=heard.append) as other,
    ):
        talk(one, other)
        assert one.is_settled
        assert other.is_settled
        ours.put(b"later", group="u", app="a", name="later")
        one.lace_changed()
        assert not one.is_settled
        talk(one, other)
        assert "later" in names(theirs)
        one.finish()
        talk(one, other)
        assert one.is_over
        assert other.is_over
        assert not one.is_settled
    assert {type(event) for event in heard} >= {lace.EpochBegan, lace.Received, lace.FixedPoint}


def test_time_is_that_of_the_clock_of_the_lace_and_silence_ends_an_exchange() -> None:
    clock = MovableClock()
    with lace.Session(filled(1, clock=clock), dialled=True) as session:
        while session.data_to_send():
            pass
        waits = session.next_timer
        assert waits is not None
        assert 0 < waits <= 30
        session.handle_timer()  # too early: nothing
        assert not session.is_over
        clock.move(waits + 0.001)
        assert session.next_timer == 0
        session.handle_timer()
        assert session.outcome is not None
        assert session.outcome.status is lace.ExchangeStatus.CLOSED_EARLY
        assert session.next_timer is None


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 2000, b"", b"\xf0\x9f\x94\x97" * 500])
def test_a_peer_that_speaks_something_else_ends_the_exchange_and_raises_nothing(said: bytes) -> None:
    with lace.Session(filled(1), dialled=False, expose="all") as session:
        session.receive_data(said)
        assert session.outcome is not None
        assert not session.outcome.is_complete
        session.receive_data(b"more of it")
        with pytest.raises(lace.NotConverged):
            session.outcome.raise_for_status()


def test_a_peer_that_is_refused_is_told_so() -> None:
    with lace.Session(filled(1), dialled=True, expose="all") as session:
        session.receive_data(lace.Session.refusal())
        session.receive_data(b"")
        assert session.outcome is not None
        assert session.outcome.status is lace.ExchangeStatus.REFUSED


def test_of_a_long_transfer_little_is_read_ahead() -> None:
    """Records are read as they are taken: what is deleted after the first of twelve megabytes is not sent any more."""
    size, sent = 120_000, 0
    ours, theirs = filled(100, size=size), filled(0)
    with (
        lace.Session(ours, dialled=True, expose="all") as one,
        lace.Session(theirs, dialled=False) as other,
    ):
        while not (one.is_over and other.is_over):
            data = one.data_to_send()
            sent += len(data)
            if sent > 1 << 20:
                ours.delete(*(row.hash for row in ours.list()))
            if data:
                other.receive_data(data)
            elif not step(other, one) and one.is_over:
                other.receive_data(b"")
    assert (1 << 20) // size <= len(names(theirs)) < 30


def test_a_stranger_from_elsewhere_gives_nothing_unless_it_proved_a_key() -> None:
    """As on every listener (040 allows it): nothing is requested of who proved nothing."""
    key = lace.generate_key().verifier
    for peer, comes in ((None, 0), (key, 4)):
        ours, proof = filled(0), lace.TransportProof.at("tcp:203.0.113.7", peer=peer)
        with (
            lace.Session(ours, dialled=False, proof=proof) as one,
            lace.Session(filled(4), dialled=True, expose="all") as other,
        ):
            talk(other, one)
        assert len(names(ours)) == comes


def test_quotas_hold_for_what_comes_in() -> None:
    ours = filled(0)
    with (
        lace.Session(ours, dialled=True, quotas=lace.Quotas(total=lace.Allowance(records=3))) as one,
        lace.Session(filled(10), dialled=False, expose="all") as other,
    ):
        talk(one, other)
        assert one.outcome is not None
        assert one.outcome.status is lace.ExchangeStatus.INCOMPLETE
    assert len(names(ours)) == 3


def test_a_closed_session_says_so() -> None:
    session = lace.Session(filled(1), dialled=True)
    session.close()
    session.close()
    assert session.data_to_send() == b""
    assert session.is_over
    with pytest.raises(lace.LocalProtocolError, match="begin another one"):
        session.receive_data(b"x")
    with pytest.raises(lace.LocalProtocolError, match="begin another one"):
        session.handle_timer()
