"""Advertisement records, listings and fact blocks (050 FACT, ADVF, ADVREC, LIST, RECON, SEND)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from interlace.pair import VERIFIER_A, VERIFIER_B, Side, blob, group_module, hash_of, make_pair, plex
from interlace.scripted import Scripted, limits_with
from lace.errors import InvalidInput
from lace.facts.predicates import ADVERTISED
from lace.iltp.items import FactLines
from lace.iltp.reader import StreamReader
from lace.iltp.writer import encode_facts, encode_preface
from lace.interlace import inputs as given
from lace.interlace.claims.advertisement import (
    Advertisement,
    FieldClaim,
    ListingReader,
    advertisement_facts,
    canonical_bytes,
    canonical_fields,
    canonical_listing,
    is_record_id,
    record_digest,
    record_digests,
    sendable_fields,
)
from lace.interlace.loop.blocks import BlockReader
from lace.interlace.phases import Phase
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.setup.hello import ALL_FIELDS
from lace.interlace.vocabulary import Block
from lace.notation.fact import Fact
from lace.notation.factline import format_fact, parse_fact
from lace.policy.exposure import Exposure
from lace.policy.operand import Module

mark = pytest.mark
HELLO_WORLD = hash_of(blob(b"hello world"))
RECORD = "B." + "0" * 43 + ".H3"
OTHER = "P." + "1" + "0" * 42 + ".H3"
BAD = AbortReason.MALFORMED_FACT_BLOCK


# --- fact lines as text ---------------------------------------------------------------------------------------------


def read_block(data: bytes) -> list[object]:
    """The items of a block as the byte codec sees them."""
    reader = StreamReader()
    return [*reader.feed(encode_preface() + data), *reader.read_all()]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"TickReady('\xff')", id="utf-8", marks=mark.clause("050-FACT-02")),
        pytest.param("TickReady('e\u0301')".encode(), id="nfc", marks=mark.clause("050-FACT-03")),
        pytest.param(b"TickReady(X)", id="variable", marks=mark.clause("050-FACT-05")),
        pytest.param(b"TickReady(_)", id="anonymous", marks=mark.clause("050-FACT-05")),
        pytest.param(b"TickReady(5)", id="number", marks=mark.clause("050-FACT-05")),
        pytest.param(b"TickReady(f('x'))", id="nested", marks=mark.clause("050-FACT-05")),
        pytest.param(b"TickReady('a\\n')", id="escape", marks=mark.clause("050-FACT-06")),
        pytest.param(b"TickReady('a\rb')", id="cr-inside", marks=mark.clause("050-FACT-06", "050-FACT-07")),
        pytest.param(b"TickReady('a')\r", id="crlf", marks=mark.clause("050-FACT-07")),
        pytest.param(b"TickReady( 'a')", id="space", marks=mark.clause("050-FACT-08")),
        pytest.param(b"MayRequest('a', 'b')", id="space-after-comma", marks=mark.clause("050-FACT-08")),
        pytest.param(b"TickReady('a').", id="period", marks=mark.clause("050-FACT-08")),
        pytest.param(b"A('x') :- B('x')", id="rule", marks=mark.clause("050-FACT-09")),
        pytest.param(b"TickReady('a') # why", id="comment", marks=mark.clause("050-FACT-09")),
        pytest.param(b"HelloAllAdvertisedFields", id="no-parentheses", marks=mark.clause("050-FACT-04")),
    ],
)
def test_a_line_in_another_spelling_is_refused_and_the_machine_aborts(line: bytes) -> None:
    with pytest.raises(InvalidInput) as refusal:
        read_block(line + b"\n\n")
    wire = Scripted().open()
    wire.give(given.StreamFailed(str(refusal.value)))
    assert wire.reason is BAD


@mark.clause("050-FACT-01", "050-FACT-04", "050-FACT-06", "050-FACT-12")
@examples(
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=8), max_size=5)
)
def test_facts_survive_their_text(values: list[str]) -> None:
    from unicodedata import normalize

    from lace.notation.fact import Fact, Predicate

    fact = Fact(Predicate("Any", len(values)), tuple(normalize("NFC", value) for value in values))
    assert parse_fact(format_fact(fact), 1 << 20) == fact
    items = read_block(encode_facts([fact]) + b"\n")
    assert isinstance(items[1], FactLines)
    assert items[1].facts == (fact,)


# --- canonical records ----------------------------------------------------------------------------------------------


@mark.clause("050-ADVREC-07", "050-ADVREC-06", "050-ADVREC-03")
def test_the_digest_is_that_of_the_golden_vector() -> None:
    text = canonical_bytes(Advertisement(HELLO_WORLD, (FieldClaim("Type", "0", "B"),)), "Opq_s", 1024)
    assert len(text) == 162
    assert text.endswith(b"\n")
    assert record_digest(text).hex() == "2a648e24549a79571cf847e4fbd32f5678c63b6bafd63424e1d547e9f2deabe6"


@mark.clause("050-ADVREC-07")
def test_many_at_once_are_those_of_one_by_one() -> None:
    claims = [
        Advertisement(HELLO_WORLD),
        Advertisement(HELLO_WORLD, (FieldClaim("Type", "0", "B"), FieldClaim("Name", "0", "it's" * 300))),
    ]
    for source in ("Opq_s", "it's"):
        texts = [canonical_bytes(claim, source, 1024) for claim in claims]
        assert record_digests(claims, source, 1024) == list(map(record_digest, texts))
        assert canonical_listing(claims, source, 1024) == b"".join(texts)


@mark.clause("050-ADVF-06")
def test_the_first_foreign_source_of_many_is_named() -> None:
    rows = [(HELLO_WORLD, "Opq_s"), *((HELLO_WORLD, f"Opq_{number}") for number in range(20))]
    block = BlockReader(Block.LISTING, 10_000, ListingReader("Opq_s", None, 100))
    with pytest.raises(ProtocolAbort, match="Opq_0"):
        block.read([Fact(ADVERTISED, row) for row in rows], 0)


@mark.clause("050-ADVREC-04", "050-ADVREC-05", "050-ADVREC-09")
def test_fields_stand_by_name_bytes_then_by_number() -> None:
    fields = [
        ("Type", "0"),
        ("Group", "0"),
        ("App", "10"),
        ("App", "2"),
        ("Name", "0"),
        ("App'", "0"),
        ("É", "0"),
        ("Z", "0"),
    ]
    claim = Advertisement(RECORD, canonical_fields(FieldClaim(name, index, "x") for name, index in fields))
    lines = [parse_fact(line, 1024).values for line in canonical_bytes(claim, "S", 1024).decode().splitlines()]
    assert lines[0] == (RECORD, "S")
    order = [(values[2], values[3]) for values in lines[1:]]
    assert order == [
        ("App", "2"),
        ("App", "10"),
        ("App'", "0"),
        ("Group", "0"),
        ("Name", "0"),
        ("Type", "0"),
        ("Z", "0"),
        ("É", "0"),
    ]


@mark.clause("050-LIST-10", "050-SEND-08")
def test_a_field_line_over_the_limit_is_left_out_and_the_record_stays() -> None:
    fits, too_long = FieldClaim("A", "0", "v" * 938), FieldClaim("B", "0", "v" * 939)
    claim = Advertisement(RECORD, (fits, too_long))
    lines = canonical_bytes(claim, "Opq_s", 1024).decode().splitlines()
    assert [len(line) for line in lines[1:]] == [1024]
    assert sendable_fields(claim, "Opq_s", 1024) == (fits,)


@examples(
    st.lists(st.tuples(st.sampled_from(["A", "B'", "Ü\\"]), st.integers(0, 12), st.text(max_size=400)), max_size=6)
)
def test_the_kept_fields_are_those_of_the_canonical_text(fields: list[tuple[str, int, str]]) -> None:
    unique = {(name, str(index)): value.replace("\n", "").replace("\r", "") for name, index, value in fields}
    claim = Advertisement(RECORD, canonical_fields(FieldClaim(n, i, v) for (n, i), v in unique.items()))
    kept = Advertisement(RECORD, sendable_fields(claim, "Opq_s", 300))
    assert canonical_bytes(claim, "Opq_s", 300) == canonical_bytes(kept, "Opq_s", 10_000)


@mark.clause("050-ADVF-15", "050-REQF-01")
@pytest.mark.parametrize(
    ("text", "passes"),
    [
        (RECORD, True),
        (OTHER, True),
        ("Z.00.X", True),
        ("z.00.H3.1", True),
        ("Z.0.X", False),
        ("Z..X", False),
        ("Z.01.X", False),
        ("Z.00.", False),
        ("ZZ.00.X", False),
        ("P.00.H3", False),
        ("Q." + "0" * 43 + ".H3", False),
        ("", False),
        ("B." + "0" * 42 + "1.H3", False),
        ("1.00.X", False),
        ("é.00.X", False),
        ("Z.00.H3", False),
        ("P.EXAMPLE.H3", False),
    ],
)
def test_what_may_stand_as_a_record_id(text: str, passes: bool) -> None:
    assert is_record_id(text) is passes


# --- listings -------------------------------------------------------------------------------------------------------


def listing_wire(**options: object) -> Scripted:
    wire = Scripted(module=group_module("u"), **options)
    return wire.open()


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["{a}", "Advertised('{r}','Opq_s')"], id="our-label", marks=mark.clause("050-ADVF-06")),
        pytest.param(["Advertised('{r}','elsewhere')"], id="other-label", marks=mark.clause("050-ADVF-06")),
        pytest.param(["{f}"], id="orphan", marks=mark.clause("050-ADVF-13")),
        pytest.param(
            ["{a}", "AdvertisedField('{r}','{s}','App','0','x')"], id="schema", marks=mark.clause("050-ADVF-14")
        ),
        pytest.param(
            ["{a}", "AdvertisedField('{r}','{s}','Group','01','u')"], id="index-01", marks=mark.clause("050-ADVF-08")
        ),
        pytest.param(
            ["{a}", "AdvertisedField('{r}','{s}','Group','-1','u')"], id="index--1", marks=mark.clause("050-ADVF-08")
        ),
        pytest.param(
            ["{a}", "{f}", "AdvertisedField('{r}','{s}','Group','0','v')"],
            id="two-values",
            marks=mark.clause("050-ADVREC-08"),
        ),
        pytest.param(["Advertised('P.00.H3','{s}')"], id="id", marks=mark.clause("050-ADVF-15")),
        pytest.param(["Advertised('{r}')"], id="arity", marks=mark.clause("050-FACT-10", "050-ADVF-01")),
        pytest.param(["AdvertisedField('{r}','{s}','Group','0')"], id="field-arity", marks=mark.clause("050-ADVF-02")),
        pytest.param(["MayRequest('{r}')"], id="request", marks=mark.clause("050-FACT-10")),
        pytest.param(
            ["{a}", "AdvertisementPartition('00','1','{root}')"], id="mixed", marks=mark.clause("050-LIST-09")
        ),
    ],
)
def test_a_bad_listing_aborts(lines: list[str]) -> None:
    wire = listing_wire()
    words = {
        "r": RECORD,
        "s": wire.label,
        "a": wire.advertised(RECORD),
        "f": wire.claim(RECORD, "Group", "u"),
        "root": "0" * 43,
    }
    wire.say(*(line.format(**words) for line in lines))
    assert wire.reason is BAD


@mark.clause(
    "050-ADVREC-08", "050-FACT-11", "050-RECON-01", "050-RECON-06", "050-EVAL-01", "050-ADVF-01", "050-ADVF-02"
)
def test_a_listing_in_any_order_with_repeats_is_understood() -> None:
    wire = listing_wire()
    wire.heard()
    wire.say(
        wire.claim(RECORD, "Group", "u"),
        wire.advertised(OTHER),
        wire.advertised(RECORD),
        wire.advertised(RECORD),
        wire.claim(RECORD, "Group", "u"),
    )
    assert wire.heard() == [f"MayRequest('{RECORD}')", ""]


@mark.clause("050-RECON-04", "050-LIST-01", "050-ERR-04", "050-FMT-03", "050-FMT-04")
def test_a_listing_replaces_the_one_before_and_a_foreign_format_is_only_data() -> None:
    wire = Scripted().open()
    wire.say(wire.advertised(RECORD), wire.advertised("Z.00.X"))
    assert wire.heard()[-2:] == [f"MayRequest('{RECORD}')", ""]  # nothing of another format is requested
    wire.say()
    wire.give(given.BlockEnded())
    wire.say(f"NotAvailable('{RECORD}')")
    assert wire.phase is Phase.LISTING
    wire.advertise(OTHER)
    assert wire.side.held_hashes == [OTHER]


@mark.clause("050-LIST-01", "050-LIST-02", "050-RECON-02", "050-ADVREC-08", "050-SEND-08", "050-ADVREC-01")
def test_our_listing_is_canonical_and_sorted_by_record() -> None:
    stored = [plex(f"n{number}", headers=[("Mood", "a"), ("Mood", "b")]) for number in range(6)] + [blob(b"x")]
    wire = Scripted(stored=tuple(stored), schema=ALL_FIELDS)
    wire.open(HelloAllAdvertisedFields="HelloAllAdvertisedFields()")
    lines = [line for line in wire.heard() if line.startswith("Advertis")]
    records = [line.split("'")[1] for line in lines if line.startswith("Advertised(")]
    assert records == sorted(map(hash_of, stored))
    reader = ListingReader(wire.own_label, None, 100)
    for line in lines:
        values = parse_fact(line, 1024).values
        if len(values) == 2:
            reader.add_records([values[0]], values[1])
        else:
            reader.add_field(values)
    assert "".join(line + "\n" for line in lines).encode() == b"".join(
        canonical_bytes(claim, wire.own_label, 1024) for claim in reader.finish()
    )


@mark.clause("050-ADVF-07", "050-SETF-08", "050-HELF-09", "050-REQF-05", "050-RUN-08", "050-STATE-03")
def test_an_evaluation_sees_the_peers_claims_the_seven_runtime_facts_and_nothing_of_control() -> None:
    pair = make_pair(signed=True)
    for side in pair.sides:
        side.put(plex("mine", group=f"g{side.config.index}"))
    seen: list[Fact] = []
    for side in pair.sides:

        def spy(
            claims: Sequence[Advertisement], side: Side = side, original: Callable[..., object] = side.host.sets
        ) -> object:
            source = side.host.wanted.peer_source
            assert source == side.machine.agreement.peer
            seen.extend(fact for claim in claims for fact in advertisement_facts(claim, source))
            return original(claims)

        side.host.sets = spy  # type: ignore[method-assign,assignment]
    pair.exchange()
    runtime = {fact.predicate.name for side in pair.sides for facts in side.runtime for fact in facts}
    assert runtime <= {"Here", "Peer", "Transport", "TransportEncrypted", "StartTAI", "TickTAI", "ClockSkewSeconds"}
    assert {fact.predicate.name for fact in seen} == {"Advertised"}
    assert {fact.values[1] for fact in seen} == {VERIFIER_A, VERIFIER_B}


@mark.clause("050-SETF-08", "050-HELF-09", "050-REQF-05")
def test_a_rule_that_reads_control_predicates_selects_nothing() -> None:
    module = Module.author(
        "SelectHave(P) :- Have(P), ExchangeOperand(_,_,_,_).\nSelectHave(P) :- Have(P), HelloTAI(_).\n"
        "SelectHave(P) :- Have(P), TickReady(_).\nSelectAdvertised(P,S) :- Advertised(P,S)."
    )
    pair = make_pair(module)
    pair.sides[0].put(blob(b"x"))
    pair.exchange()
    assert pair.sides[1].have == set()


@mark.clause("050-ADVF-09", "050-INVAR-03", "050-SEND-09", "050-STATE-04", "050-MODEL-06")
def test_a_lying_advertisement_brings_an_honest_record_with_its_true_facts() -> None:
    stored = plex("x", group="true")
    wire = Scripted(module=group_module("u")).open()
    wire.say(wire.advertised(hash_of(stored)), wire.claim(hash_of(stored), "Group", "u"))
    wire.say()
    wire.send_records(stored)
    wire.give(given.BlockEnded())
    wire.say()
    groups = [row[3] for row in wire.side.store.snapshot().query(_field(), hash_of(stored), "Group")]
    assert groups == ["true"]


def _field() -> object:
    from lace.facts.predicates import FIELD

    return FIELD


@mark.clause("050-SEND-01", "050-SEND-10", "050-INVAR-07", "050-SEND-11", "050-LIST-08")
def test_only_what_is_selected_and_exposed_is_advertised() -> None:
    expose = (Exposure.author("AllowQueryRecord(V,P) :- Have(P), Field(P,'App',_,'ding')."),)
    shown, hidden, other = plex("a"), plex("b", app="secret"), plex("c", group="v")
    wire = Scripted(module=group_module("u"), stored=(shown, hidden, other), expose=expose).open()
    listed = [line.split("'")[1] for line in wire.heard() if line.startswith("Advertised(")]
    assert listed == [hash_of(shown)]


@mark.clause("050-SEND-11")
def test_without_exposure_nothing_is_advertised() -> None:
    wire = Scripted(stored=(blob(b"x"),), expose=()).open()
    assert wire.heard()[-1:] == [""]
    assert not wire.side.named("Advertised")


@mark.clause("050-SEND-13", "050-SEND-01")
def test_without_the_gate_the_bare_letter_holds() -> None:
    stored = blob(b"x")
    select = Module.author(f"SelectHave('{hash_of(stored)}') :- true.\nSelectAdvertised(P,S) :- Advertised(P,S).")
    for gate, expected in ((True, []), (False, [hash_of(stored)])):
        wire = Scripted(stored=(stored, blob(b"y")), peer_module=select, expose=(), send_gate=gate).open()
        assert [values[0] for values in wire.side.named("Advertised")] == expected


@mark.clause("050-LIST-10", "050-LIM-03", "050-LIM-02")
@pytest.mark.parametrize("limit, most", [("max_advertisement_records_listed", 2), ("max_fact_block_size", 200)])
def test_a_listing_over_a_limit_is_a_local_error_before_a_byte_of_it_is_sent(limit: str, most: int) -> None:
    limits = limits_with(**{limit: most})
    wire = Scripted(stored=tuple(blob(bytes([n])) for n in range(3)), limits=limits, partitions=False).open()
    assert wire.reason is AbortReason.LOCAL_FAILURE
    assert wire.side.aborted is not None
    assert wire.side.aborted.result.limit_reached == limit  # which a command tells by its exit code
    assert wire.side.aborted.detail.endswith(f"passes {limit}, and no partitions are agreed")
    assert not wire.side.named("Advertised")


@mark.clause("050-LIST-10", "050-LIM-03")
def test_a_listing_of_as_many_records_as_allowed_is_sent() -> None:
    stored = tuple(blob(bytes([n])) for n in range(3))
    limits = limits_with(max_advertisement_records_listed=3)
    wire = Scripted(stored=stored, limits=limits, partitions=False).open()
    assert wire.reason is None
    assert [values[0] for values in wire.side.named("Advertised")] == sorted(map(hash_of, stored))


@mark.clause("050-LIM-03")
def test_a_peer_that_lists_more_than_agreed_is_aborted() -> None:
    wire = Scripted(limits=limits_with(max_advertisement_records_listed=1)).open()
    wire.advertise(RECORD, OTHER)
    assert wire.reason is AbortReason.OVERSIZED_FACT_BLOCK


@mark.clause("050-FACT-12", "050-ENG-01", "050-ENG-08", "050-RECON-03")
def test_text_tuples_and_changes_give_the_same_state() -> None:
    states = []
    for direct in (False, True):
        pair = make_pair(group_module("u"), is_direct=direct)
        pair.sides[0].put(*(plex(f"n{n}", group="u" if n % 2 else "v") for n in range(8)))
        pair.sides[1].put(plex("n1"), plex("other"))
        pair.exchange()
        states.append([(sorted(side.have), side.held) for side in pair.sides])
    assert states[0] == states[1]
    wire = listing_wire()
    wire.give(given.AdvertisementsReceived([Advertisement(RECORD, (FieldClaim("Group", "0", "u"),))]))
    wire.give(given.BlockEnded())
    assert wire.heard()[-2:] == [f"MayRequest('{RECORD}')", ""]


def test_advertisements_out_of_place_are_refused() -> None:
    wire = Scripted()
    wire.setup()
    wire.give(given.AdvertisementsReceived([Advertisement(RECORD)]))
    assert wire.reason is BAD
    with pytest.raises(ProtocolAbort):
        ListingReader("S", None, 0).add_claim(Advertisement(RECORD))
