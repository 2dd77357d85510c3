"""A peer written from the documents alone (050, 060, 070) meets ours over tcp, in both roles."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lace
from differences.onpaper import Summary, symbols_text
from interop.stranger import Line, Stranger, of
from lace.porcelain.lace import Lace

BOTH = (("x_differences", "1"), ("x_differences_salt", "90210"))
PACKING = (*BOTH, ("x_compression", "1"))


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Lace]:
    with lace.open(tmp_path / "ours.lace", create=True) as opened:
        yield opened


def put(opened: Lace, kind: str, count: int) -> list[str]:
    return [
        str(
            opened.put(
                f"{kind} {n}".encode(), group="u", app="ding", name=f"{kind}/{n}", tai=f"164099520{n % 10}:{n:09}"
            )
        )
        for n in range(count)
    ]


def have(opened: Lace) -> dict[str, bytes]:
    """What a lace holds, by name."""
    return {data[len("🖧: ".encode()) : data.index(b"\n")].decode(): data for _, data in opened.store.bodies_since()}


def meet(ours: Lace, stranger: Stranger, **options: Any) -> None:
    """One exchange of a stranger with us, whoever of the two dials."""
    if stranger.index == 0:
        with lace.serve(ours, "tcp:127.0.0.1:0", expose="all") as (address,):
            stranger.meet(socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))), **options)
        return
    failed: list[Exception] = []
    with socket.create_server(("127.0.0.1", 0)) as door:

        def accept() -> None:
            try:
                stranger.meet(door.accept()[0])
            except (AssertionError, OSError) as error:
                failed.append(error)

        thread = threading.Thread(target=accept)
        thread.start()
        outcome = lace.connect(ours, f"tcp:127.0.0.1:{door.getsockname()[1]}", expose="all")
        thread.join()
    assert not outcome.abort, f"{outcome.abort}: {outcome.detail}"
    assert not failed, failed
    assert outcome.result.fixed_point


def sets(ours: Lace, tmp_path: Path, common: int, mine: int, theirs: int) -> dict[str, bytes]:
    """Fill ours; what the stranger has."""
    put(ours, "common", common)
    records = have(ours)
    put(ours, "mine", mine)
    with lace.open(tmp_path / "theirs.lace", create=True) as other:
        put(other, "theirs", theirs)
        return records | have(other)


@pytest.mark.clause("070-EQUAL-01", "070-EQUAL-03", "070-TELL-03", "070-END-01", "070-END-03", "070-END-04")
@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize(("mine", "theirs"), [(0, 0), (1, 0), (0, 1), (7, 9), (40, 25)])
@pytest.mark.parametrize("capabilities", [BOTH, PACKING], ids=["plain", "packed"])
def test_the_document_is_enough_to_compare(
    ours: Lace, tmp_path: Path, index: int, mine: int, theirs: int, capabilities: tuple[tuple[str, str], ...]
) -> None:
    stranger = Stranger(sets(ours, tmp_path, 80, mine, theirs), index, capabilities)
    meet(ours, stranger)
    assert stranger.records == have(ours)
    assert len(stranger.records) == 80 + mine + theirs
    teller = stranger.said if index == 1 else stranger.heard
    assert ("DifferenceSymbols" in teller) is (mine + theirs > 0)
    assert stranger.said.count("Advertised") == theirs
    assert stranger.heard.count("Advertised") == mine
    assert "DifferenceDrop" not in stranger.said + stranger.heard


@pytest.mark.clause("070-SKETCH-05", "070-SKETCH-02")
@pytest.mark.parametrize("per_line", [1, 20, 55])
def test_a_line_may_hold_fewer_symbols_than_it_could(ours: Lace, tmp_path: Path, per_line: int) -> None:
    stranger = Stranger(sets(ours, tmp_path, 60, 7, 9), 1, per_line=per_line)
    meet(ours, stranger)
    assert stranger.records == have(ours)
    assert "DifferenceDrop" not in stranger.said + stranger.heard


@pytest.mark.clause("070-BASE-01", "070-BASE-02", "070-BASE-03")
def test_an_open_exchange_is_told_what_changed(ours: Lace, tmp_path: Path) -> None:
    stranger, steps = Stranger(sets(ours, tmp_path, 60, 3, 4), 0), iter(range(4))
    before: list[int] = []

    def news() -> bool:
        """At each fixed point: nothing is left; then one side or the other has something new."""
        assert stranger.records == have(ours)
        before[:] = [len(stranger.said), len(stranger.heard)]
        step = next(steps, None)
        if step is None:
            return False
        if step % 2:
            with lace.open(tmp_path / f"{step}.lace", create=True) as other:
                put(other, f"late {step}", step + 1)
                stranger.records.update(have(other))
        else:
            put(ours, f"late {step}", step + 1)
        return True

    meet(ours, stranger, after=news)
    assert stranger.records == have(ours)
    assert len(stranger.records) == 60 + 3 + 4 + 1 + 2 + 3 + 4
    assert (stranger.said.count("Advertised"), stranger.heard.count("Advertised")) == (4 + 2 + 4, 3 + 1 + 3)
    assert stranger.heard.count("DifferenceSymbols") == 1  # lines of the first loop, and of no later one
    assert not {"DifferenceAsk", "DifferenceDrop"} & {*stranger.said, *stranger.heard}


@pytest.mark.clause("070-CAP-01", "070-CAP-03")
@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("capabilities", [(), (("x_differences", "0"),)], ids=["none", "off"])
def test_a_peer_that_knows_only_listings_converges(
    ours: Lace, tmp_path: Path, index: int, capabilities: tuple[tuple[str, str], ...]
) -> None:
    stranger = Stranger(sets(ours, tmp_path, 60, 7, 9), index, capabilities)
    meet(ours, stranger)
    assert stranger.records == have(ours)
    assert not [name for name in stranger.said + stranger.heard if name.startswith("Difference")]


class Doubting(Stranger):
    """Drops whatever is compared, where its next block would stand."""

    def _sketch(self, own: set[str], mine: Summary) -> set[str]:
        if self.index == 0:
            self._hear()
        self._doubt()
        return own


@pytest.mark.clause("070-DROP-01", "070-DROP-02", "070-BASE-03")
@pytest.mark.parametrize("index", [0, 1])
def test_after_a_drop_listings_follow_and_are_a_base(ours: Lace, tmp_path: Path, index: int) -> None:
    stranger = Doubting(sets(ours, tmp_path, 60, 7, 9), index)
    meet(ours, stranger)
    assert stranger.records == have(ours)
    assert (stranger.said.count("Advertised"), stranger.heard.count("Advertised")) == (69, 67)
    for spoken in (stranger.said, stranger.heard):
        assert spoken.count("DifferenceRoot") == 1
        assert spoken[-1] == "DifferenceSummary"  # of the second loop, which tells the change since the first


def garbled(predicate: str) -> Callable[[list[Line]], list[Line]]:
    """Whatever is data in the first block with such lines is something else of the same length."""
    told: list[Line] = []

    def other(value: str) -> str:
        return "0" + value[1:] if len(value) > 10 else value

    def lie(lines: list[Line]) -> list[Line]:
        if told or predicate not in {line[0] for line in lines}:
            return lines
        told.extend(lines)
        return [(line[0], *map(other, line[1:])) if line[0] == predicate else line for line in lines]

    return lie


ASKER, TELLER = 0, 1


@pytest.mark.clause("070-DROP-01", "070-LIAR-01", "070-KEY-04")
@pytest.mark.parametrize(
    ("index", "lie"),
    [
        (ASKER, "DifferenceRoot"),
        (ASKER, "DifferenceSummary"),
        (ASKER, "DifferenceLacks"),
        (TELLER, "DifferenceSummary"),
        (TELLER, "DifferenceSymbols"),
    ],
)
def test_a_stranger_that_lies_costs_itself_a_listing(ours: Lace, tmp_path: Path, index: int, lie: str) -> None:
    stranger = Stranger(sets(ours, tmp_path, 60, 7, 9), index, lie=garbled(lie))
    meet(ours, stranger)
    assert stranger.records == have(ours)
    assert len(have(ours)) == 76
    assert stranger.said.count("Advertised") + stranger.heard.count("Advertised") <= 2 * 76 + 16


class Dribbling(Stranger):
    """Gives one symbol at a time, whatever it is asked for."""

    def _tell(self, own: set[str], names: dict[int, str], mine: Summary) -> set[str]:
        symbols = self._key.symbols(own, 400)
        first: list[Line] = [("DifferenceSummary", *mine.texts())]
        for at in range(400):
            self._say([*first, ("DifferenceSymbols", str(at), symbols_text(symbols[at : at + 1]))])
            first = []
            if not of(self._hear(), "DifferenceMore"):
                break
        return own


@pytest.mark.clause("070-TELL-04", "070-LIAR-01")
def test_symbols_that_come_one_by_one_end_the_exchange(ours: Lace, tmp_path: Path) -> None:
    stranger = Dribbling(sets(ours, tmp_path, 60, 30, 30), 1)
    with pytest.raises(AssertionError, match="malformed fact block"):
        meet(ours, stranger)
    assert stranger.heard.count("DifferenceMore") == 1
