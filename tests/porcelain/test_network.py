"""Exchanges with peers elsewhere, from a plain program."""

from __future__ import annotations

from pathlib import Path

import pytest

import lace
from lace.errors import InvalidText, TransportError
from lace.interlace.events import FixedPoint
from lace.porcelain.network import connect, serve


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
                near, address, select="//u", expose="selected", on_event=lambda _, event: events.append(event)
            )
        assert outcome.is_complete
        assert near.get("//u//a//1") == b"one"
        assert far.get("//u//a//3") == b"three"
        assert not list(near.list("//v"))
        assert any(isinstance(event, FixedPoint) for event in events)
        with pytest.raises(TransportError):
            connect(near, address)


def test_what_cannot_be_served_is_told_to_the_caller(tmp_path: Path) -> None:
    with lace.open(":memory:") as opened:
        with pytest.raises(TransportError), serve(opened, f"unix:{tmp_path}/no/such/folder.sock"):
            raise AssertionError("not reached")
        with pytest.raises(InvalidText), serve(opened, "http:x"):
            raise AssertionError("not reached")
