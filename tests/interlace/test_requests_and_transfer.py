"""Requests, transfer, validation and results (050 REQ, REQF, XFER, VALID, RESULT, ERR, MODEL, INVAR)."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

import pytest

from interlace.pair import blob, group_module, hash_of, make_pair, plex
from interlace.scripted import Scripted, limits_with
from lace.errors import InvalidInput
from lace.iltp.reader import StreamReader
from lace.iltp.writer import encode_preface
from lace.interlace import inputs as given
from lace.interlace.effects import SendFacts, SendRecords
from lace.interlace.events import Deferred, NotAvailable, Rejected
from lace.interlace.phases import Phase
from lace.interlace.reasons import AbortReason
from lace.notation.digest import digest
from lace.notation.identifiers import RecordHash
from lace.notation.tai import TAI
from lace.policy.operand import Module
from lace.records.keys import SigningKey
from lace.records.model import Blob, Plex
from lace.records.write import encode_record

mark = pytest.mark
X, Y, Z = blob(b"x"), blob(b"y"), blob(b"z")
BAD = AbortReason.MALFORMED_FACT_BLOCK


def asking(*advertised: bytes, **options: object) -> Scripted:
    """Our empty side has read the peer's listing and sent its requests; the peer asked for nothing."""
    wire = Scripted(**options).open()
    wire.advertise(*map(hash_of, advertised))
    wire.say()
    return wire


def asked(*stored: bytes, wants: tuple[str, ...] | None = None, **options: object) -> Scripted:
    """Our side has records; the peer lists nothing and requests."""
    wire = Scripted(stored=stored, **options).open()
    wire.say()
    wire.heard()
    wire.say(*(f"MayRequest('{record}')" for record in (map(hash_of, stored) if wants is None else wants)))
    return wire


def end_response(wire: Scripted, *lines: str) -> None:
    wire.give(given.BlockEnded())
    wire.say(*lines)


# --- requests -------------------------------------------------------------------------------------------------------


@mark.clause("050-REQ-01", "050-REQF-02", "050-REQ-04", "050-REQ-05", "050-MODEL-04", "050-INVAR-02", "050-EVAL-02")
def test_what_is_advertised_allowed_and_missing_is_requested_sorted() -> None:
    wire = Scripted(stored=(X,)).open()
    wire.heard()
    wire.advertise(hash_of(Z), hash_of(X), hash_of(Y))
    assert wire.heard() == [*(f"MayRequest('{record}')" for record in sorted([hash_of(Y), hash_of(Z)])), ""]


@mark.clause("050-REQ-03", "050-INVAR-02", "050-MODEL-07", "050-INVAR-06", "050-MODEL-02")
def test_what_policy_does_not_allow_is_not_requested() -> None:
    wanted, other = plex("a"), plex("b", group="v")
    wire = Scripted(module=group_module("u")).open()
    wire.heard()
    wire.say(
        wire.advertised(hash_of(wanted)),
        wire.claim(hash_of(wanted), "Group", "u"),
        wire.advertised(hash_of(other)),
        wire.claim(hash_of(other), "Group", "v"),
    )
    assert wire.heard() == [f"MayRequest('{hash_of(wanted)}')", ""]


@mark.clause("050-REQ-04", "050-INVAR-04")
def test_what_the_peer_does_not_advertise_is_not_requested_even_if_a_rule_names_it() -> None:
    module = Module.author(f"SelectHave(P) :- Have(P).\nSelectAdvertised('{hash_of(X)}',S) :- Advertised(_,S).")
    wire = Scripted(module=module, peer_module=module).open()
    wire.heard()
    wire.advertise(hash_of(Y))
    assert wire.heard() == [""]


@mark.clause("050-REQ-06", "050-FMT-03", "050-FMT-04")
def test_a_format_that_one_side_does_not_accept_is_not_requested() -> None:
    wire = Scripted(record_formats=frozenset({"H3", "X"})).open(
        HelloRecordFormat=["HelloRecordFormat('H3')", "HelloRecordFormat('Y')"]
    )
    wire.heard()
    wire.say(wire.advertised("Z.00.X"), wire.advertised("Z.00.Y"))
    assert wire.heard() == [""]


@mark.clause("050-REQ-02", "050-BOUND-02")
def test_a_request_list_is_bounded_and_the_rest_comes_later() -> None:
    pair = make_pair(max_requests=2)
    pair.sides[0].put(*(blob(bytes([n])) for n in range(5)))
    first, second = pair.exchange()
    lists = [effect.facts for effect in pair.sides[1].wire if isinstance(effect, SendFacts)]
    sizes = [len([f for f in facts if f.predicate.name == "MayRequest"]) for facts in lists]
    assert max(sizes) == 2
    assert len(second.received_hashes) == 5
    assert first.fixed_point


@mark.clause("050-LIM-02", "050-REQ-02")
def test_a_request_list_fits_the_block_limit() -> None:
    records = [blob(bytes([n])) for n in range(10)]
    wire = Scripted(limits=limits_with(max_fact_block_size=1_000)).open()
    wire.advertise(*map(hash_of, records))
    requests = [line for line in wire.heard() if line.startswith("MayRequest")]
    assert 0 < len(requests) < 15
    assert sum(len(line) + 1 for line in requests) <= 1_000


@mark.clause("050-REQ-08")
def test_a_side_with_nothing_to_request_sends_an_empty_block() -> None:
    wire = Scripted().open()
    wire.heard()
    wire.say()
    assert wire.heard() == [""]


@mark.clause("050-REQF-01")
@pytest.mark.parametrize("text", ["MayRequest('P.00.H3')", "MayRequest('nothing')"])
def test_a_request_for_what_is_no_record_id_aborts(text: str) -> None:
    wire = Scripted().open()
    wire.say()
    wire.say(text)
    assert wire.reason is BAD


# --- service --------------------------------------------------------------------------------------------------------


@mark.clause("050-XFER-07", "050-REQF-08", "050-REQF-07", "050-MODEL-05", "050-INVAR-01")
def test_requested_records_are_sent_back_to_back_then_both_ends() -> None:
    wire = asked(X, Y)
    assert wire.heard() == [f"<record {hash_of(X)}>", f"<record {hash_of(Y)}>", "", ""]
    assert wire.side.machine.result().unconfirmed_hashes == (hash_of(X), hash_of(Y))
    assert wire.side.machine.result().bytes_sent == len(X) + len(Y)


@mark.clause("050-REQ-09", "050-REQF-03", "050-ERR-17", "050-XFER-03")
def test_a_request_for_what_is_not_sendable_is_answered_and_does_not_abort() -> None:
    wire = asked(X, wants=(hash_of(Y), hash_of(X), "Z.00.X"))
    assert (
        wire.heard()
        == [
            "",
            f"<record {hash_of(X)}>",
            "",
            f"NotAvailable('{hash_of(Y)}')",
            "NotAvailable('Z.00.X')",
            "",
        ][1:]
    )
    assert wire.reason is None


@mark.clause("050-REQ-09", "050-XFER-02")
def test_the_send_gate_answers_not_available_for_what_it_hides() -> None:
    wire = Scripted(stored=(X,), expose=()).open()
    wire.say()
    wire.heard()
    wire.say(f"MayRequest('{hash_of(X)}')")
    assert wire.heard() == ["", f"NotAvailable('{hash_of(X)}')", ""]


@mark.clause("050-XFER-02", "050-XFER-03", "050-INVAR-01", "050-NONMONO-02")
def test_a_record_deleted_between_request_and_service_is_not_available() -> None:
    wire = Scripted(stored=(X, Y)).open()
    wire.say()
    wire.side.store.delete(hash_of(X))
    wire.heard()
    wire.say(f"MayRequest('{hash_of(X)}')", f"MayRequest('{hash_of(Y)}')")
    assert wire.heard() == [f"<record {hash_of(Y)}>", "", f"NotAvailable('{hash_of(X)}')", ""]


@mark.clause("050-XFER-03", "050-INVAR-01")
def test_a_record_that_vanishes_while_it_is_loaded_is_not_available() -> None:
    wire = Scripted(stored=(X, Y)).open()
    wire.say()
    wire.side.host.stored = lambda record: None if record == hash_of(X) else Y  # type: ignore[method-assign]
    wire.say(f"MayRequest('{hash_of(X)}')", f"MayRequest('{hash_of(Y)}')")
    assert wire.heard()[-2:] == [f"NotAvailable('{hash_of(X)}')", ""]


@mark.clause("050-XFER-02", "050-NONMONO-01", "050-INVAR-01")
def test_policy_is_evaluated_again_before_service() -> None:
    module = Module.author(
        "SelectHave(P) :- Have(P), not Blocked(P).\nBlocked(P) :- Have(P), Field(Q,'Name',_,P).\n"
        "SelectAdvertised(P,S) :- Advertised(P,S)."
    )
    wire = Scripted(module=module, stored=(X,)).open()
    wire.say()
    wire.side.put(plex(hash_of(X), app="block"))
    wire.heard()
    wire.say(f"MayRequest('{hash_of(X)}')")
    assert wire.heard() == ["", f"NotAvailable('{hash_of(X)}')", ""]


@mark.clause("050-XFER-01", "050-XFER-04", "050-BOUND-08", "050-XFER-05", "050-XFER-06", "050-DRV-02")
@pytest.mark.parametrize("budget", [{"max_service_records": 1}, {"max_service_bytes": 1}])
def test_a_sender_with_a_budget_of_one_record_still_sends_all(budget: dict[str, int]) -> None:
    pair = make_pair(**budget)
    pair.sides[0].put(*(blob(bytes([n])) for n in range(4)))
    _, second = pair.exchange()
    sizes = [len(effect.hashes) for effect in pair.sides[0].wire if isinstance(effect, SendRecords)]
    assert len(sizes) == 4
    assert len(second.received_hashes) == 4
    assert second.rejected_hashes == {}
    assert second.not_available_hashes == ()
    deferred = [event for event in pair.sides[1].events if isinstance(event, Deferred)]
    assert [len(event.hashes) for event in deferred] == [3, 2, 1]


@mark.clause("050-RESULT-07", "050-XFER-05", "050-XFER-04")
def test_a_deferred_hash_is_in_no_list_of_the_result() -> None:
    wire = asking(X)
    end_response(wire)
    result = wire.side.machine.result()
    assert (result.received_hashes, dict(result.rejected_hashes), result.not_available_hashes) == ((), {}, ())
    wire.heard()
    wire.advertise(hash_of(X))
    assert wire.heard() == [f"MayRequest('{hash_of(X)}')", ""]


# --- responses ------------------------------------------------------------------------------------------------------


@mark.clause("050-RESULT-05", "050-RESULT-08", "050-REQF-09")
def test_a_valid_response_is_stored_and_counted() -> None:
    wire = asking(X)
    wire.send_records(X)
    end_response(wire)
    result = wire.side.machine.result()
    assert result.received_hashes == (hash_of(X),)
    assert result.bytes_received == len(X)
    assert wire.side.have == {hash_of(X)}


FLIPPED = X[:-1] + b"w"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(FLIPPED, id="hash", marks=mark.clause("050-VALID-01")),
        pytest.param(
            X.replace(b"Data-Length: 1", b"Data-Length: 01"), id="structure", marks=mark.clause("050-VALID-02")
        ),
        pytest.param(Y, id="another-record", marks=mark.clause("050-VALID-01")),
    ],
)
@mark.clause("050-VALID-05", "050-VALID-06", "050-RESULT-06", "050-ERR-16", "050-INVAR-05", "050-RESULT-08")
def test_invalid_bytes_are_rejected_and_the_round_goes_on(data: bytes) -> None:
    wire = asking(X, Z)
    wire.send_records(data, Z, claimed=(hash_of(X), hash_of(Z)))
    end_response(wire)
    result = wire.side.machine.result()
    assert list(result.rejected_hashes) == [hash_of(X)]
    assert result.received_hashes == (hash_of(Z),)
    assert result.bytes_received == len(data) + len(Z)
    assert wire.side.have == {hash_of(Z)}
    assert wire.phase is Phase.LISTING
    assert any(isinstance(event, Rejected) for event in wire.side.events)


@mark.clause("050-VALID-03", "050-VALID-04")
def test_embedded_hashes_and_signatures_are_validated() -> None:
    plain = Plex(group="u", app="a", name="n", tai=TAI("1640995200:000000000"), blob=Blob(b"data"))
    good = SigningKey(bytes(31) + b"\x07").seal(plain, aux=bytes(31) + b"\x01")
    forged = encode_record(replace(good, signature=good.signature[:-4] + "0000"))
    inner = encode_record(good).replace(b"data", b"dota")
    bad_inner = _with_hash("S", inner)
    for data in (forged, bad_inner):
        wire = Scripted().open()
        wire.advertise(hash_of(data))
        wire.say()
        wire.send_records(data)
        end_response(wire)
        assert list(wire.side.machine.result().rejected_hashes) == [hash_of(data)]
        assert wire.side.have == set()


def _with_hash(kind: str, stored: bytes) -> bytes:
    """The bytes under a markline that is right for them: only what is inside is wrong."""
    payload = stored.split(b"\n", 1)[1]
    return f"🖧: {RecordHash.of(kind, digest(payload))}\n".encode() + payload


@mark.clause("050-XFER-11", "050-REQ-08")
@pytest.mark.parametrize("how", ["rejected", "not available"])
def test_what_was_refused_is_asked_for_again_only_when_the_peers_state_changed(how: str) -> None:
    wire = asking(X)
    if how == "rejected":
        wire.send_records(FLIPPED, claimed=(hash_of(X),))
        end_response(wire)
    else:
        end_response(wire, f"NotAvailable('{hash_of(X)}')")
    wire.heard()
    wire.advertise(hash_of(X))
    assert wire.heard() == [""]
    assert wire.side.machine.result().fixed_point is False
    changed = asking(X)
    end_response(changed, f"NotAvailable('{hash_of(X)}')")
    changed.heard()
    changed.advertise(hash_of(X), hash_of(Y))
    assert changed.heard() == [*(f"MayRequest('{r}')" for r in sorted([hash_of(X), hash_of(Y)])), ""]


@mark.clause("050-RESULT-07")
def test_not_available_is_reported() -> None:
    wire = asking(X)
    end_response(wire, f"NotAvailable('{hash_of(X)}')")
    assert wire.side.machine.result().not_available_hashes == (hash_of(X),)
    assert any(isinstance(event, NotAvailable) for event in wire.side.events)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        pytest.param(
            "never-requested",
            AbortReason.RECORD_NOT_REQUESTED,
            marks=mark.clause("050-XFER-09", "050-ERR-15", "050-REQF-09"),
        ),
        pytest.param("twice", AbortReason.RECORD_NOT_REQUESTED, marks=mark.clause("050-XFER-09")),
        pytest.param("in-listing", AbortReason.RECORD_NOT_REQUESTED, marks=mark.clause("050-ERR-15")),
        pytest.param("after-batch", AbortReason.RECORD_NOT_REQUESTED, marks=mark.clause("050-XFER-10")),
        pytest.param(
            "other-format", AbortReason.UNSUPPORTED_RECORD_FORMAT, marks=mark.clause("050-ERR-04", "050-FMT-05")
        ),
        pytest.param("stray-not-available", BAD, marks=mark.clause("050-REQF-10")),
        pytest.param("not-available-after-record", BAD, marks=mark.clause("050-REQF-10")),
        pytest.param("not-available-of-no-id", BAD, marks=mark.clause("050-REQF-01")),
        pytest.param("facts-in-batch", BAD, marks=mark.clause("050-FACT-10")),
    ],
)
def test_a_response_that_answers_nothing_aborts(script: str, reason: AbortReason) -> None:
    wire = Scripted().open() if script == "in-listing" else asking(X)
    match script:
        case "never-requested" | "in-listing":
            wire.send_records(Y)
        case "twice":
            wire.send_records(X)
            wire.send_records(X)
        case "after-batch":
            wire.give(given.BlockEnded())
            wire.send_records(X)
        case "other-format":
            wire.send_records(b"\xf0\x9f\x96\xa7: Z.00.X\n", claimed=("Z.00.X",))
        case "stray-not-available":
            end_response(wire, f"NotAvailable('{hash_of(Y)}')")
        case "not-available-after-record":
            wire.send_records(X)
            end_response(wire, f"NotAvailable('{hash_of(X)}')")
        case "not-available-of-no-id":
            end_response(wire, "NotAvailable('x')")
        case "facts-in-batch":
            wire.begin(f"NotAvailable('{hash_of(X)}')")
    assert wire.reason is reason
    assert wire.side.have <= {hash_of(X)}  # 050-ERR-18: what was valid stays


@mark.clause("050-ERR-18", "050-ERR-01", "050-ERR-14", "050-LIM-06")
def test_the_transfer_limit_aborts_with_what_was_stored() -> None:
    wire = asking(X, Y, limits=limits_with(max_total_transferred_bytes=len(X) + 1))
    first, second = sorted([X, Y], key=hash_of)
    wire.send_records(first)
    wire.send_records(second)
    assert wire.reason is AbortReason.TRANSFER_LIMIT_EXCEEDED
    assert wire.side.aborted is not None
    assert wire.side.aborted.result.received_hashes == (hash_of(first),)
    assert wire.side.have == {hash_of(first)}


@mark.clause("050-LIM-06")
def test_rejected_bytes_count_against_the_transfer_limit() -> None:
    wire = asking(X, Y, limits=limits_with(max_total_transferred_bytes=len(X) + 1))
    wire.send_records(FLIPPED, Y, claimed=(hash_of(X), hash_of(Y)))
    assert wire.reason is AbortReason.TRANSFER_LIMIT_EXCEEDED


@mark.clause("050-LIM-06", "050-ERR-14")
def test_a_sender_does_not_pass_the_agreed_limit_and_stops_when_nothing_fits() -> None:
    pair = make_pair(limits=limits_with(max_total_transferred_bytes=len(X) + 1))
    pair.sides[0].put(X, Y)
    pair.start()
    pair.run()
    assert pair.sides[0].aborted is not None
    assert pair.sides[0].aborted.reason is AbortReason.TRANSFER_LIMIT_EXCEEDED
    assert pair.sides[0].aborted.result.bytes_sent == len(X)
    assert len(pair.sides[1].have) == 1


@mark.clause("050-REQ-07")
def test_a_requested_record_is_stored_even_if_its_batch_made_it_unwanted() -> None:
    module = Module.author(
        "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S), not Enough(P).\n"
        "Enough(P) :- Advertised(P,_), Have(_)."
    )
    wire = asking(X, Y, module=module, peer_module=module)
    wire.send_records(*sorted([X, Y], key=hash_of))
    end_response(wire)
    assert len(wire.side.have) == 2


@mark.clause("050-INVAR-04", "050-INVAR-05", "050-EVAL-01")
def test_a_received_request_is_no_fact_for_our_engine() -> None:
    wire = Scripted(stored=(X,), expose=()).open()
    wire.say()
    wire.say(f"MayRequest('{hash_of(Y)}')")
    wire.say()
    assert not [effect for effect in wire.side.wire if isinstance(effect, SendRecords) and effect.hashes]
    assert not wire.side.host.requestable


@mark.clause("050-EVAL-04", "050-ERR-01")
def test_an_evaluation_error_ends_the_round() -> None:
    wire = Scripted(stored=(X,))
    wire.setup()
    wire.side.evaluation_error = "limit max_working_rows = 5 exceeded"
    wire.hello()
    assert wire.reason is AbortReason.EVALUATION_FAILED


@mark.clause("050-ERR-09")
def test_a_policy_that_cannot_be_made_aborts() -> None:
    wire = Scripted()
    wire.setup()

    def refuse(*_: object) -> NoReturn:
        raise InvalidInput("no", rule="policy")

    wire.side.host.prepare = refuse  # type: ignore[method-assign]
    wire.hello()
    assert wire.reason is AbortReason.MALFORMED_PREPARED_POLICY


@mark.clause("050-DRV-04", "050-DRV-01")
def test_a_whole_loop_on_the_wire_follows_the_grammar() -> None:
    wire = Scripted(stored=(Y,)).open()
    assert wire.heard()[-2:] == [f"Advertised('{hash_of(Y)}','{wire.own_label}')", ""]
    wire.advertise(hash_of(X))
    assert wire.heard() == [f"MayRequest('{hash_of(X)}')", ""]
    wire.say(f"MayRequest('{hash_of(Y)}')")
    assert wire.heard() == [f"<record {hash_of(Y)}>", "", ""]
    wire.send_records(X)
    assert wire.heard() == []
    end_response(wire)
    both = [f"Advertised('{record}','{wire.own_label}')" for record in sorted([hash_of(X), hash_of(Y)])]
    assert wire.heard() == [*both, ""]
    wire.advertise(hash_of(X), hash_of(Y))
    assert wire.heard() == [""]
    wire.say()
    assert wire.side.finished is not None
    assert wire.side.finished.fixed_point
    assert wire.side.finished.loops == 2


@mark.clause("050-MODEL-09", "050-MODEL-08", "050-RESULT-01", "050-RESULT-03")
def test_a_fixed_point_is_no_claim_that_the_stores_are_equal() -> None:
    pair = make_pair(group_module("u"), group_module("u"))
    pair.sides[0].put(plex("a"), plex("b", group="v"))
    first, second = pair.exchange()
    assert first.fixed_point
    assert second.fixed_point
    assert pair.sides[0].have != pair.sides[1].have
    assert first.exchange_plan_id == pair.sides[0].machine.agreement.plan.id


@mark.clause("050-XFER-08")
def test_the_trailer_hash_form_is_not_supported_and_ends_the_exchange() -> None:
    reader = StreamReader()
    reader.feed(encode_preface())
    reader.receive("⋯🖧: \nData-Length: 1\n\nx".encode())
    with pytest.raises(InvalidInput) as refusal:
        reader.read_all()
    wire = asking(X)
    wire.give(given.StreamFailed(str(refusal.value)))
    assert wire.reason is BAD
    assert wire.side.have == set()


@mark.clause("050-MODEL-07")
def test_only_what_was_asked_for_is_sent_whatever_it_links_to_or_rests_on() -> None:
    """The record links to another, and it is selected because of a third: neither goes along."""
    support = plex("support", app="member")
    linked = plex("whole", headers=[("Link", f"part {hash_of(X)}")])
    module = Module.author(
        "SelectHave(P) :- Have(P), Field(Q,'App',_,'member'), Have(Q).\nSelectAdvertised(P,S) :- Advertised(P,S)."
    )
    wire = Scripted(module=module, peer_module=module, stored=(X, linked, support)).open()
    wire.say()
    wire.heard()
    wire.say(f"MayRequest('{hash_of(linked)}')")
    assert [line for line in wire.heard() if line.startswith("<")] == [f"<record {hash_of(linked)}>"]


@mark.clause("050-MODEL-07")
def test_evaluating_and_looking_at_claims_asks_for_no_support() -> None:
    """A rule that lacks what would make it true asks for nothing: not for the member, nor for what is linked."""
    module = Module.author(
        "SelectHave(P) :- Have(P).\n"
        "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'App',_,'ding'), Field(_,'App',_,'member')."
    )
    wire = Scripted(module=module, peer_module=module).open()
    wire.heard()
    ding, member = plex("a", headers=[("Link", f"part {hash_of(X)}")]), plex("m", app="member")
    lines = [wire.advertised(hash_of(record)) for record in (ding, member, X)]
    lines += [wire.claim(hash_of(ding), "App", "ding"), wire.claim(hash_of(member), "App", "member")]
    wire.say(*lines)
    assert wire.heard() == [""]
