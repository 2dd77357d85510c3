"""071 on the wire: what is announced, what may stand where, and what aborts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interlace.pair import ALL, blob, config_of, group_module, hash_of
from interlace.scripted import Scripted, limits_with
from interop.harness import filled
from lace.interlace.effects import Evaluate
from lace.interlace.events import HoldingBack, RefusedByPeer, Taken
from lace.interlace.loop.refusals import MAX_DECLINED_NAMED, Reason, RefusalBook, most_requests
from lace.interlace.reasons import AbortReason
from lace.interlace.setup.agreement import own_hello
from lace.interlace.setup.hello import Hello, agree
from lace.limits import ExchangeLimits
from lace.policy.compile import agree as compile_operands
from lace.policy.operand import Module
from refusals.links import HORIZON, LATE, QUOTA, at_most, bytes_at_most, lines, plex_at, run
from runtime.memory_link import End, MemoryLink

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "refusals.json").read_text(encoding="utf-8"))
X, Y, Z = (blob(text) for text in (b"x", b"y", b"z"))
OTHER = hash_of(blob(b"never sent"))


def hello(index: int, module: Module = ALL, **seat: Any) -> Hello:
    plan = compile_operands(module, module)
    return own_hello(config_of(index, module, **seat), plan, 10**18)


def negotiated(ours: Hello, theirs: Hello, module: Module = ALL) -> Any:
    names = compile_operands(module, module).requirements.names
    return agree(ours, theirs, ExchangeLimits(), names)


def announced(hello: Hello) -> dict[str, int]:
    return dict(hello.capabilities)


# --- announcing ------------------------------------------------------------------------------------------------


@pytest.mark.clause("071-CAP-01")
def test_where_it_is_off_on_one_side_nothing_of_it_is_on_the_wire() -> None:
    standard = [End(config_of(index), filled([X] if index == 0 else [Y])) for index in (0, 1)]
    MemoryLink(standard).run()
    for on in (0, 1):
        ends = [End(config_of(i, refusals=i == on), filled([X] if i == 0 else [Y])) for i in (0, 1)]
        MemoryLink(ends).run()
        assert bytes(ends[1 - on].sent) == bytes(standard[1 - on].sent)
        extra = set(lines(ends[on], "")) - set(lines(standard[on], ""))
        assert extra == {"HelloAdvertisedField('Data-Length')", "HelloLimit('x_refusals','2')"}
        assert ends[on].outcome.result.unconfirmed_hashes
    off = [End(config_of(i, refusals=True), filled([X] if i == 0 else [Y])) for i in (0, 1)]
    assert bytes(off[0].sent) == b""
    MemoryLink(off).run()
    assert all("Refused" not in "".join(lines(end, "")) for end in off)  # nothing was refused


def test_the_terms_switch_it_off() -> None:
    config = config_of(0, refusals=True)
    quiet = replace(config, terms=replace(config.terms, refusals=False))
    plan = compile_operands(ALL, ALL)
    assert own_hello(quiet, plan, 10**18) == own_hello(config_of(0), plan, 10**18)


@pytest.mark.clause("071-CAP-02")
@pytest.mark.parametrize(("told", "version"), [(None, 0), (0, 0), (1, 1), (2, 2), (3, 2)])
def test_the_version_is_the_least_of_both(told: int | None, version: int) -> None:
    ours, theirs = hello(0, refusals=True), hello(1)
    theirs = replace(theirs, capabilities=(("x_refusals", told),) if told is not None else ())
    assert negotiated(ours, theirs).refusals == negotiated(theirs, ours).refusals == version


def test_a_value_that_is_no_number_fails_the_negotiation() -> None:
    peer = Scripted(refusals=True)
    peer.open(HelloLimit="HelloLimit('x_refusals','x')")
    assert peer.reason is AbortReason.MALFORMED_FACT_BLOCK


def opened(version: int, *stored: bytes, **options: Any) -> Scripted:
    """Our machine, with these records, in the request phase with a peer that speaks a version."""
    peer = Scripted(stored=stored, refusals=True, **options)
    peer.open(HelloLimit=f"HelloLimit('x_refusals','{version}')")
    peer.advertise()
    peer.heard()
    return peer


REFUSED = f"Refused('{hash_of(X)}','quota')"
DECLINED = f"Declined('{hash_of(X)}','quota')"
COUNT = "DeclinedCount('quota','1')"


@pytest.mark.clause("071-CAP-03")
@pytest.mark.parametrize("line", [REFUSED, DECLINED, COUNT])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_line_of_a_version_that_is_not_spoken_aborts(line: str, version: int) -> None:
    peer = opened(version, X)
    peer.say(*([COUNT] if line == DECLINED and version == 2 else []), line)
    if line == REFUSED:  # X was not sent yet, and that aborts as well
        assert peer.reason is AbortReason.MALFORMED_FACT_BLOCK
    else:
        assert (peer.reason is None) == (version == 2)


@pytest.mark.parametrize("line", [REFUSED, DECLINED, COUNT])
def test_none_of_it_stands_in_an_advertisement(line: str) -> None:
    peer = Scripted(stored=(X,), refusals=True)
    peer.open(HelloLimit="HelloLimit('x_refusals','2')")
    peer.say(line)
    assert peer.reason is AbortReason.MALFORMED_FACT_BLOCK


# --- refused ---------------------------------------------------------------------------------------------------


def served(*stored: bytes, version: int = 2) -> Scripted:
    """Our machine has sent these records, and the next loop's request lists are due."""
    peer = opened(version, *stored)
    peer.say(*(f"MayRequest('{hash_of(record)}')" for record in stored))
    peer.say()  # its records: none
    peer.say()  # its availability
    peer.advertise()
    peer.heard()
    return peer


@pytest.mark.clause("071-REASON-01")
@pytest.mark.parametrize("reason", ["quota", "horizon", "full", "invalid", "policy", "withdrawn"])
def test_every_reason_of_the_list_is_taken_and_told(reason: str) -> None:
    assert set(map(str, Reason)) == {"quota", "horizon", "full", "invalid", "policy", "withdrawn"}
    peer = served(X, Y)
    peer.say(f"Refused('{hash_of(X)}','{reason}')")
    result = peer.side.finished
    assert result is not None
    assert dict(result.refused_hashes) == {hash_of(X): reason}
    assert list(result.sent_hashes) == [hash_of(Y)]
    assert not result.unconfirmed_hashes
    assert result.is_converged == (reason == "withdrawn")
    assert RefusedByPeer({hash_of(X): reason}) in peer.side.events
    assert Taken([hash_of(Y)]) in peer.side.events


@pytest.mark.clause("071-FACT-02")
@pytest.mark.parametrize(
    "bad",
    [
        ["Refused('{x}','Quota')"],
        ["Refused('{x}','')"],
        ["Refused('{x}','because')"],
        ["Refused('nothing','quota')"],
        ["Refused('{x}','quota')", "Refused('{x}','full')"],
        ["DeclinedCount('quota','0')"],
        ["DeclinedCount('quota','01')"],
        ["DeclinedCount('quota','-1')"],
        ["DeclinedCount('quota','x')"],
        ["DeclinedCount('because','1')"],
        ["DeclinedCount('quota','1')", "DeclinedCount('quota','2')"],
        ["Declined('{x}','quota')"],
        ["DeclinedCount('full','1')", "Declined('{x}','quota')"],
        ["DeclinedCount('quota','1')", "Declined('{x}','quota')", "Declined('{y}','quota')"],
        [
            "DeclinedCount('quota','2')",
            "DeclinedCount('full','2')",
            "Declined('{x}','quota')",
            "Declined('{x}','full')",
        ],
        ["DeclinedCount('quota','2')", "Declined('x','quota')"],
    ],
)
def test_a_malformed_line_aborts(bad: list[str]) -> None:
    peer = served(X, Y)
    peer.say(*(line.format(x=hash_of(X), y=hash_of(Y)) for line in bad))
    assert peer.reason is AbortReason.MALFORMED_FACT_BLOCK


@pytest.mark.clause("071-FACT-02")
@pytest.mark.parametrize("over", [0, 1])
def test_so_many_records_are_named_and_no_more(over: int) -> None:
    peer = served(X)
    names = [hash_of(blob(str(number).encode())) for number in range(MAX_DECLINED_NAMED + over)]
    peer.say("DeclinedCount('quota','5000')", *(f"Declined('{name}','quota')" for name in names))
    assert (peer.reason is None) == (over == 0)


@pytest.mark.clause("071-FACT-03")
@pytest.mark.parametrize("where", ["req", "availability"])
def test_a_refusal_of_what_was_not_sent_aborts(where: str) -> None:
    if where == "req":
        peer = served(X)
        peer.say(f"Refused('{OTHER}','quota')")
    else:
        peer = opened(2, X, Y)
        peer.say(f"MayRequest('{hash_of(X)}')")
        peer.say()
        peer.say(f"Refused('{hash_of(Y)}','quota')")
    assert peer.reason is AbortReason.MALFORMED_FACT_BLOCK


@pytest.mark.clause("071-FACT-03")
def test_what_was_refused_is_not_refused_again_and_a_repeat_is_one_fact() -> None:
    peer = served(X, Y)
    peer.say(REFUSED, REFUSED, f"MayRequest('{hash_of(Y)}')")
    assert peer.reason is None
    peer.say()
    peer.say(REFUSED)
    assert peer.reason is AbortReason.MALFORMED_FACT_BLOCK


def test_a_refusal_rides_in_the_availability_block_of_the_same_transfer() -> None:
    peer = opened(2, X, Y)
    peer.say(f"MayRequest('{hash_of(X)}')", f"MayRequest('{hash_of(Y)}')")
    peer.say()
    peer.say(REFUSED)
    peer.advertise()
    peer.say()
    assert peer.side.finished is not None
    assert dict(peer.side.finished.refused_hashes) == {hash_of(X): "quota"}
    assert list(peer.side.finished.sent_hashes) == [hash_of(Y)]


@pytest.mark.clause("071-AGAIN-02")
def test_what_was_refused_is_not_sent_again_in_the_exchange() -> None:
    peer = served(X, Y)
    peer.say(REFUSED, f"MayRequest('{hash_of(X)}')", f"MayRequest('{hash_of(Y)}')")
    said = peer.heard()
    assert f"NotAvailable('{hash_of(X)}')" in said
    assert f"<record {hash_of(Y)}>" in said
    assert f"<record {hash_of(X)}>" not in said


@pytest.mark.clause("071-TAKEN-01")
def test_what_was_sent_is_taken_with_the_next_request_list_and_not_before() -> None:
    peer = opened(1, X)
    peer.say(f"MayRequest('{hash_of(X)}')")
    peer.say()
    peer.say()
    assert list(peer.side.machine.result().unconfirmed_hashes) == [hash_of(X)]
    assert not peer.side.machine.result().sent_hashes
    peer.advertise()
    assert not peer.side.machine.result().sent_hashes
    peer.say()
    result = peer.side.machine.result()
    assert (list(result.sent_hashes), list(result.unconfirmed_hashes)) == ([hash_of(X)], [])


@pytest.mark.clause("071-TAKEN-01")
def test_without_the_capability_nothing_is_confirmed() -> None:
    peer = opened(0, X)
    peer.say(f"MayRequest('{hash_of(X)}')")
    peer.say()
    peer.say()
    peer.advertise()
    peer.say()
    result = peer.side.finished
    assert result is not None
    assert result.is_complete
    assert not result.is_converged
    assert (list(result.sent_hashes), list(result.unconfirmed_hashes)) == ([], [hash_of(X)])


@pytest.mark.clause("071-RIDE-02")
def test_what_stands_in_a_forgotten_list_is_told_again() -> None:
    book = RefusalBook()
    book.begin(2)
    book.refuse({str(hash_of(X)): Reason.FULL})
    assert len(book.facts()) == 1
    book.refuse({str(hash_of(Y)): Reason.QUOTA})
    assert len(book.facts()) == 2  # the list before was forgotten
    book.refuse({str(hash_of(Z)): Reason.QUOTA})
    book.conclude()
    assert [fact.values[0] for fact in book.facts()] == [hash_of(Z)]


@pytest.mark.clause("071-FACT-01")
def test_no_evaluation_sees_a_refusal() -> None:
    peer = served(X, Y)
    peer.say(REFUSED, "DeclinedCount('full','1')", f"MayRequest('{hash_of(Y)}')")
    seen = {fact.predicate.name for facts in peer.side.runtime for fact in facts}
    assert seen
    assert not seen & {"Refused", "Declined", "DeclinedCount"}


@pytest.mark.clause("071-HELD-02")
def test_a_list_says_all_that_is_held_back_now() -> None:
    peer = served(X, Y)
    peer.say("DeclinedCount('quota','7')", DECLINED, f"MayRequest('{hash_of(Y)}')")
    assert dict(peer.side.machine.result().held_back_by_peer.counts) == {"quota": 7}
    assert dict(peer.side.machine.result().held_back_by_peer.records) == {hash_of(X): "quota"}
    assert HoldingBack({}, {"quota": 7}) in peer.side.events
    peer.say()
    peer.say()
    peer.advertise()
    peer.say()
    assert peer.side.finished is not None
    assert not peer.side.finished.held_back_by_peer
    assert peer.side.finished.is_converged


@pytest.mark.clause("071-RIDE-04")
@pytest.mark.parametrize("version", [0, 1, 2])
def test_no_more_is_asked_for_than_a_block_can_refuse(version: int) -> None:
    block = 4096
    peer = Scripted(refusals=True, limits=limits_with(max_fact_block_size=block))
    peer.open(HelloLimit=f"HelloLimit('x_refusals','{version}')")
    peer.advertise(*(str(hash_of(blob(str(number).encode()))) for number in range(40)))
    most = {effect.max_requests for effect in peer.side.asked if isinstance(effect, Evaluate)} - {0}
    assert most == {most_requests(block) if version else peer.side.terms.max_requests}
    assert len([line for line in peer.heard() if line.startswith("MayRequest")]) == (26 if version else 40)


# --- lengths ---------------------------------------------------------------------------------------------------


@pytest.mark.clause("071-LEN-02")
@pytest.mark.parametrize("module", [ALL, group_module("u")])
@pytest.mark.parametrize("wanted", [(False, False), (True, False), (False, True), (True, True)])
def test_lengths_are_told_where_a_side_wants_them(module: Module, wanted: tuple[bool, bool]) -> None:
    ours, theirs = (hello(i, module, refusals=True, wants_lengths=wanted[i]) for i in (0, 1))
    assert ("x_refusals_lengths" in announced(ours)) == wanted[0]
    names = negotiated(ours, theirs, module).schema.names
    required = compile_operands(module, module).requirements.names
    assert names == (required | {"Data-Length"} if any(wanted) else required)


@pytest.mark.clause("071-LEN-02")
def test_with_a_peer_of_the_first_version_the_schemas_meet_as_ever() -> None:
    ours, theirs = hello(0, refusals=True), hello(1, refusals=True)
    old = replace(theirs, capabilities=(("x_refusals", 1),))
    assert negotiated(ours, old).schema.names == {"Data-Length"}
    assert negotiated(ours, hello(1)).schema.names == frozenset()


@pytest.mark.clause("071-LEN-02")
def test_a_plan_that_reads_lengths_gets_them() -> None:
    module = Module.author(
        "SelectHave(P) :- Have(P), Field(P,'Data-Length',_,N), IntCompare(N,'<','10').\n"
        "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Data-Length',_,N), IntCompare(N,'<','10')."
    )
    ours, theirs = (hello(i, module, refusals=True) for i in (0, 1))
    assert negotiated(ours, theirs, module).schema.names == {"Data-Length"}


# --- vectors ---------------------------------------------------------------------------------------------------

RECORDS = [plex_at(f"n{number}", data=b"d" * number) for number in range(4)]
SCENES = {
    "held back by a quota of records": lambda: run(RECORDS, [], QUOTA),
    "held back by a quota of bytes": lambda: run(RECORDS, [], bytes_at_most(2 * len(RECORDS[3]) + 10)),
    "refused for its date": lambda: run([plex_at("late", LATE), X], [Y], HORIZON),
    "refused by the side that dialled": lambda: run([Y], [plex_at("late", LATE), X], HORIZON, receiver=0),
    "all of it kept": lambda: run([X], [Y], at_most(9)),
}


def streams(ends: tuple[End, End]) -> list[str]:
    return [bytes(end.sent).decode("latin-1") for end in ends]


@pytest.mark.parametrize("scene", SCENES)
def test_the_streams_are_the_vectors(scene: str) -> None:
    assert streams(SCENES[scene]()) == VECTORS["streams"][scene]


def test_every_vector_has_its_scene() -> None:
    assert set(VECTORS["streams"]) == set(SCENES)
    assert set(VECTORS["reasons"]) == set(map(str, Reason))
