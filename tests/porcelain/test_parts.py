"""Content in parts, from one lace to another: whatever selects, shows, fetches or removes it does so with all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import lace
from lace.errors import IncompleteContent
from lace.limits import RecordLimits
from lace.policy.exposure import Exposure, expose_all, expose_selected
from lace.policy.operand import Module
from lace.policy.select import select_coordinate
from lace.porcelain.exchange import fetch, interlace, local_parties, publish
from lace.porcelain.lace import Lace
from lace.porcelain.network import connect, serve, terms_of
from lace.records.keys import SigningKey
from lace.runtime.local.local import exchange

SMALL = RecordLimits(max_data_bytes=100, max_extra_headers=8)  # eleven hundred bytes need nested manifests
DATA = bytes(range(256)) * 5
TEMPLATES = Path(lace.__file__).parent / "porcelain" / "templates"
ADMIN, MEMBER = SigningKey(bytes(31) + b"\5"), SigningKey(bytes(31) + b"\6")


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[str], Lace]]:
    opened: list[Lace] = []

    def open_one(name: str) -> Lace:
        opened.append(lace.open(tmp_path / f"{name}.lace", create=True, limits=SMALL))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


def put(into: Lace, data: bytes = DATA, name: str = "film", group: str = "archive", signed: bool = False) -> str:
    return into.put(data, group=group, app="x", name=name, sign=ADMIN if signed else None)


def template(name: str) -> tuple[Module, Exposure]:
    words = {"@group": "archive", "@app": "x", "@count": "20", "@admin": str(ADMIN.verifier)}
    texts = [(TEMPLATES / f"{name}.{kind}.lace").read_text() for kind in ("select", "expose")]
    for word, value in words.items():
        texts = [text.replace(word, value) for text in texts]
    return Module.author(texts[0]), Exposure.author(texts[1])


def records(of: Lace) -> int:
    return of.stat().records


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("size", [99, 100, 101, 200, 250, 1_280])
@pytest.mark.parametrize("choice", ["//archive//", "//archive//x//film", "the hash"])
def test_content_travels_whole_under_a_selector(
    make: Callable[[str], Lace], size: int, signed: bool, choice: str
) -> None:
    first, second = make("a"), make("b")
    record = put(first, DATA[:size], signed=signed)
    put(first, b"apart" * 60, group="private")
    select = record if choice == "the hash" else choice
    done = interlace(first, second, select=select, expose="selected")
    assert done.first.fixed_point
    assert second.get("//archive//x//film") == DATA[:size]
    assert not list(second.list("//private//"))
    assert list(second.incomplete()) == []
    assert interlace(first, second, select=select, expose="selected").moved == 0


@pytest.mark.parametrize("theirs", ["selected", "all", "none"])
@pytest.mark.parametrize("differences", [True, False])
@pytest.mark.parametrize("partitions", [True, False])
def test_listings_partitions_and_differences_bring_the_parts(
    make: Callable[[str], Lace], differences: bool, partitions: bool, theirs: str
) -> None:
    first, second = make("a"), make("b")
    put(first, signed=True)
    for number in range(40):
        put(first, b"%d" % number, name=f"n/{number}")
    module = select_coordinate("//archive//")
    shown = {"selected": (expose_selected(module),), "all": (expose_all(),), "none": ()}[theirs]
    parties = [
        replace(party, terms=replace(party.terms, differences=differences, partitions=partitions))
        for party in local_parties(first, second, (module, (expose_selected(module),)), (module, shown))
    ]
    exchange(*parties, is_direct=False)
    assert second.get("//archive//x//film") == DATA
    held = records(second)
    results = exchange(*parties, is_direct=False)
    assert results[0].fixed_point
    assert records(second) == held
    assert not results[0].sent_hashes
    assert not results[1].sent_hashes


@pytest.mark.parametrize("theirs", ["selected", "none"])
def test_over_tcp_the_parts_come_too_and_the_second_run_moves_nothing(make: Callable[[str], Lace], theirs: str) -> None:
    first, second = make("a"), make("b")
    put(first)
    put(first, b"apart" * 60, group="private")
    with serve(first, "tcp:127.0.0.1:0", select="//archive//", expose="selected") as bound:
        done = connect(second, bound[0], select="//archive//", expose=theirs)
        assert done.result.fixed_point
        assert second.get("//archive//x//film") == DATA
        again = connect(second, bound[0], select="//archive//", expose=theirs)
    assert again.result.fixed_point
    assert not again.result.received_hashes
    assert not again.result.sent_hashes
    assert not done.result.sent_hashes
    assert not list(second.list("//private//"))


@pytest.mark.parametrize("theirs", ["all", "none"])
def test_a_peer_that_is_given_content_asks_for_its_parts(make: Callable[[str], Lace], theirs: str) -> None:
    first, second = make("a"), make("b")
    put(first)
    with serve(second, "tcp:127.0.0.1:0", select="//archive//", expose=theirs) as bound:
        connect(first, bound[0], select="//archive//x//film", expose="selected")
    assert second.get("//archive//x//film") == DATA


@pytest.mark.parametrize("name", ["public-read", "evidence", "members", "blocked", "newest-n"])
def test_every_template_brings_the_parts(make: Callable[[str], Lace], name: str) -> None:
    first, second = make("a"), make("b")
    put(first, signed=True)
    module, shown = template(name)
    ours, theirs = local_parties(first, second, (module, (shown,)), (module, (shown,)))
    if name == "members":
        first.put(b"", group="archive", app="member", name=str(MEMBER.verifier), sign=ADMIN)
        ours, theirs = replace(ours, here=ADMIN.verifier), replace(theirs, here=MEMBER.verifier)
    exchange(ours, theirs)
    assert second.get("//archive//x//film") == DATA
    assert records(second) == records(first)


def test_fetch_and_publish_bring_the_parts(make: Callable[[str], Lace]) -> None:
    first, second, third = make("a"), make("b"), make("c")
    record = put(first)
    fetch(second, first, "//archive//x//film")
    assert second.get(record) == DATA
    publish(first, third, [record])
    assert third.get(record) == DATA


def test_without_an_exposure_nothing_is_sent_and_whole_content_is_not_seen(make: Callable[[str], Lace]) -> None:
    """The peer's rules see a manifest of ours only while a part of it is missing."""
    first, second = make("a"), make("b")
    put(first, DATA[:250], name="whole")
    put(second, b"bait")
    asks = Module.author(
        "SelectHave(P) :- Have(P).\n"
        "SelectAdvertised(P,S) :- Advertised(P,S), RecordLink(M,'Chunk+Link',_,_,C), Field(M,'Name',_,'whole')."
    )
    done = interlace(first, second, select=None, expose="none", their_select=asks, their_expose="all")
    assert not done.first.received_hashes
    assert not done.first.sent_hashes
    first.delete(next(first.list_blobs()).hash)
    done = interlace(first, second, select=None, expose="none", their_select=asks, their_expose="all")
    assert len(done.first.received_hashes) == 1
    assert not done.first.sent_hashes


def test_a_part_that_two_contents_share_moves_once_and_stays_while_one_needs_it(make: Callable[[str], Lace]) -> None:
    first, second = make("a"), make("b")
    both, other = put(first, DATA[:300], name="one"), put(first, DATA[:200] + b"z", name="two")
    interlace(first, second, select="//archive//", expose="selected")
    assert records(second) == records(first) == 2 + 4
    assert second.delete(both) == 2  # the manifest, and the third part of it: the first two are shared
    assert second.get(other) == DATA[:200] + b"z"
    assert second.delete(other) == 4
    assert records(second) == 0


def test_nested_manifests_go_and_a_linked_blob_stays(make: Callable[[str], Lace]) -> None:
    first = make("a")
    record = put(first)
    part = str(next(first.list_blobs()).hash)
    keeper = first.put(b"", group="u", app="a", name="see", headers=[("See+Link", f"evidence {part}")])
    count = records(first)
    assert first.delete(record) == count - 2
    assert {str(found) for _, found in first.store.records_since()} == {part, keeper}


def test_records_with_a_place_of_their_own_are_nobodys_part_alone(make: Callable[[str], Lace]) -> None:
    first = make("a")
    inner = put(first, DATA[:150], name="inner")
    outer = first.put(
        b"",
        group="archive",
        app="x",
        name="outer",
        headers=[("Chunk+Link", f"0..150 {inner}"), ("Content-Total-Length", "150")],
    )
    assert first.get(outer) == DATA[:150]
    assert first.delete(outer) == 1
    assert first.get(inner) == DATA[:150]


def test_what_was_cut_before_the_parts_goes_on(make: Callable[[str], Lace]) -> None:
    first, second = make("a"), make("b")
    record = put(first)
    second.store.put([first.load(first.resolve(record))])  # the manifest came, and then the line was cut
    (found,) = second.incomplete()
    assert (found.hash, found.coordinate) == (record, "//archive//x//film")
    with pytest.raises(IncompleteContent) as raised:
        second.get("//archive//x//film")
    assert raised.value.missing == found.missing
    interlace(second, first, select="//archive//", expose="none", their_expose="selected")
    assert second.get(record) == DATA
    assert list(second.incomplete()) == []
    missing = next(second.list_blobs()).hash
    second.delete(missing)
    (found,) = second.incomplete()
    assert found.missing == (missing,)
    assert str(missing) in str(found)
    assert interlace(second, first, select=record, expose="none", their_expose="all").moved == 1
    assert second.get(record) == DATA


def test_an_open_exchange_brings_content_that_is_put_meanwhile(make: Callable[[str], Lace], tmp_path: Path) -> None:
    first, second = make("a"), make("b")
    address = f"unix:{tmp_path}/s"
    with (
        serve(first, address, select="//archive//", expose="selected"),
        serve(second, follow=[address], select="//archive//"),
    ):
        for number in range(3):
            put(first, DATA[number:], name=f"film/{number}")
        for _ in second.changes("0/0", wait_s=60):
            if records(second) == records(first):
                break
    for number in range(3):
        assert second.get(f"//archive//x//film/{number}") == DATA[number:]


def test_rules_of_ones_own_that_leave_parts_behind_say_what_is_missing(make: Callable[[str], Lace]) -> None:
    first, second = make("a"), make("b")
    record = put(first, DATA[:250])
    rules = (
        "SelectHave(P) :- Have(P), Field(P,'Group',_,'archive').\n"
        "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'archive')."
    )
    interlace(first, second, select=rules, expose="all")
    (found,) = second.incomplete()
    assert (found.hash, found.parts, len(found.missing), found.missing_bytes) == (record, 3, 3, 250)


def test_terms_show_unfinished_content_by_default(make: Callable[[str], Lace]) -> None:
    assert terms_of(make("a"), None, "none", is_open=False).shows_unfinished
