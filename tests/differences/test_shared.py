"""Sets that links share, that follow the store, and that are kept with the lace (070)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from differences.test_exchange import RealSide
from interlace.deciding import refuse
from interlace.pair import ALL, EXPOSE_ALL, Pair, blob, config_of, group_module, plex
from lace.datalog.engine import Materialized
from lace.interlace import effects as asked
from lace.interlace.claims import partitions
from lace.interlace.claims.advertisement import Advertisement
from lace.interlace.claims.partitions import AdvertisementSet, Partition
from lace.interlace.host import Call, Cancelled
from lace.policy.operand import Module
from lace.records.validate import validate
from lace.runtime.host.host import LocalHost
from lace.runtime.rules import followedset
from lace.runtime.rules.byrecord import ByRecord
from lace.runtime.rules.evaluator import StoreEvaluator
from lace.runtime.rules.generation import Generation
from lace.runtime.rules.policybook import PolicyBook
from lace.store import open_store
from lace.store.base import RecordStore
from lace.store.memory import MemoryStore
from lace.thresholds import RuleThresholds

TIMELY = Module.author("SelectHave(P) :- Have(P), TickTAI(T), StartTAI(T).\nSelectAdvertised(P,S) :- Advertised(P,S).")


def questions(module: Module, theirs: Module | None = None) -> tuple[asked.PreparePolicy, asked.Evaluate]:
    """What a machine asks of its host first, under these rules on both sides, or under others of its peer's."""
    rules = module, theirs or module
    both = Pair(*(RealSide(config_of(index, rules[index], salt=index + 1)) for index in (0, 1)))
    both.exchange()
    prepared = next(effect for effect in both.sides[0].asked if isinstance(effect, asked.PreparePolicy))
    evaluated = next(effect for effect in both.sides[0].asked if isinstance(effect, asked.Evaluate))
    return prepared, evaluated


def host_of(store: RecordStore, module: Module, book: PolicyBook, **terms: RuleThresholds) -> Callable[[], object]:
    host = LocalHost(store, config_of(0, module, **terms).terms, policies=book)
    prepared, evaluate = questions(module)
    host.prepare(prepared, Call())

    def own() -> object:
        host.evaluate(evaluate, Call())
        assert host.agreed is not None
        return host.agreed.own

    return own


def keeping() -> PolicyBook:
    """A book that keeps its sets with the lace, however small they are."""
    return PolicyBook(keeps_sets=True, thresholds=RuleThresholds(min_kept_ids=1))


def filled(count: int = 5) -> MemoryStore:
    store = MemoryStore()
    store.put([validate(plex(f"n/{n}")) for n in range(count)])
    return store


@pytest.mark.parametrize("module", [ALL, group_module("u")])
def test_links_with_equal_rules_hold_the_same_set(module: Module) -> None:
    store, book = filled(), PolicyBook()
    first, second = host_of(store, module, book), host_of(store, module, book)
    before = first()
    assert second() is before
    store.put([validate(plex("late"))])
    after = second()
    assert first() is after
    assert len(after) == 6  # type: ignore[arg-type]
    assert len(before) == 5  # type: ignore[arg-type]  # a snapshot: what came later is not in it


def test_links_with_other_rules_or_other_exposures_share_nothing() -> None:
    store, book = filled(), PolicyBook()
    everything, group = host_of(store, ALL, book)(), host_of(store, group_module("u"), book)()
    assert everything is not group


def test_rules_that_read_the_time_are_evaluated_for_each_link() -> None:
    store, book = filled(), PolicyBook()
    first, second = host_of(store, TIMELY, book)(), host_of(store, TIMELY, book)()
    assert first is not second
    assert len(first) == len(second) == 5  # type: ignore[arg-type]


JOINED = Module.author(
    "SelectHave(P) :- Have(P), Field(P,'App',_,A), Field(Q,'App',_,A).\nSelectAdvertised(P,S) :- Advertised(P,S)."
)


@pytest.mark.parametrize(("module", "work"), [(JOINED, (Materialized, "apply")), (ALL, (ByRecord, "follow"))])
def test_a_link_that_breaks_off_leaves_the_others_a_whole_set(
    module: Module, work: tuple[type, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, book = filled(), PolicyBook()
    follows = RuleThresholds(again_times=0)  # however few facts there are
    first, second = (host_of(store, module, book, rule_thresholds=follows) for _ in range(2))
    assert len(first()) == 5  # type: ignore[arg-type]
    store.put([validate(plex("late"))])

    def stop(*_: object) -> None:
        raise Cancelled("hung up")

    with monkeypatch.context() as patch:
        patch.setattr(*work, stop)
        with pytest.raises(Cancelled):
            first()
    assert len(second()) == 6  # type: ignore[arg-type]
    assert first() is second()


def test_policies_that_nobody_uses_are_let_go() -> None:
    store, book = filled(), PolicyBook(max_idle=1)
    for group in "abcde":
        host = LocalHost(store, config_of(0, group_module(group)).terms, policies=book)
        prepared, evaluate = questions(group_module(group))
        host.prepare(prepared, Call())
        host.evaluate(evaluate, Call())
        host.close()
    assert book.known == 1


TWICE = Module.author("SelectHave(P) :- Have(P), Have(Q).\nSelectAdvertised(P,S) :- Advertised(P,S).")


def test_a_set_that_was_kept_is_followed_from_its_moment(store: RecordStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new process with something new looks at that, and at nothing else."""
    book = keeping()
    host_of(store, ALL, book)()
    book.keep()
    store.put([validate(blob(b"late"))])
    store.delete(validate(blob(b"1")).hash, validate(blob(b"2")).hash)

    def refuse(*_: object) -> None:
        raise AssertionError("evaluated anew")

    again = host_of(store, ALL, keeping())
    monkeypatch.setattr(StoreEvaluator, "_start", refuse)
    found = again()
    assert set(found.ids.ids().texts()) == {record for _, record in store.records_since()}  # type: ignore[attr-defined]


@pytest.fixture
def store(tmp_path: Path) -> RecordStore:
    made = open_store(tmp_path / "s.lace", create=True)
    made.put([validate(blob(b"%d" % n)) for n in range(8)])
    return made


@pytest.mark.parametrize("module", [ALL, TWICE])
def test_a_new_process_with_nothing_new_evaluates_nothing(
    store: RecordStore, module: Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = keeping()
    before = host_of(store, module, book)()
    book.keep()
    again = host_of(store, module, keeping())

    def refuse(*_: object) -> None:
        raise AssertionError("evaluated")

    with monkeypatch.context() as patch:
        patch.setattr(StoreEvaluator, "evaluate", refuse)
        found = again()
    assert found.ids.ids().texts() == before.ids.ids().texts()  # type: ignore[attr-defined]
    store.put([validate(blob(b"late"))])
    if module is ALL:  # what came is looked at by itself
        monkeypatch.setattr(StoreEvaluator, "_start", refuse)
    assert len(again()) == 9  # type: ignore[arg-type]
    store.delete(validate(blob(b"1")).hash)
    assert len(again()) == 8  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "harm", [lambda data: data[:-1], lambda data: data[:40] + b"x" + data[41:], lambda _: b"", bytes]
)
def test_a_kept_set_that_is_broken_or_old_is_none(store: RecordStore, harm: Callable[[bytes], bytes]) -> None:
    book = keeping()
    host_of(store, ALL, book)()
    book.keep()
    for name, data in store.settings("sendable").items():
        if name != "index":
            store.put_setting("sendable", name, harm(data))
    if harm is bytes:  # whole, but of another moment
        store.put([validate(blob(b"late"))])
    expected = 9 if harm is bytes else 8
    assert len(host_of(store, ALL, keeping())()) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("harm", [lambda data: data[:-33], lambda data: data[:40] + b"x" + data[41:], lambda _: None])
def test_a_set_that_is_kept_in_pieces_is_whole_or_none(
    store: RecordStore, monkeypatch: pytest.MonkeyPatch, harm: Callable[[bytes], bytes | None]
) -> None:
    thresholds = RuleThresholds(min_kept_ids=1, kept_piece_ids=3)
    book = PolicyBook(keeps_sets=True, thresholds=thresholds)
    told = host_of(store, ALL, book)()
    book.keep()
    pieces = store.settings("sendable-ids")
    assert sorted(map(len, pieces.values())) == [2 * 33, 3 * 33, 3 * 33]
    later = host_of(store, ALL, PolicyBook(keeps_sets=True, thresholds=thresholds))
    with monkeypatch.context() as patch:
        patch.setattr(StoreEvaluator, "evaluate", refuse)
        again = later()
    assert again.listing() == told.listing()  # type: ignore[attr-defined]
    name, data = sorted(pieces.items())[1]
    store.put_setting("sendable-ids", name, harm(data))
    evaluated = host_of(store, ALL, PolicyBook(keeps_sets=True, thresholds=thresholds))()
    assert evaluated.listing() == told.listing()  # type: ignore[attr-defined]


def test_a_smaller_set_leaves_no_piece_of_the_one_before(store: RecordStore) -> None:
    thresholds = RuleThresholds(min_kept_ids=1, kept_piece_ids=3)
    for _ in range(2):
        book = PolicyBook(keeps_sets=True, thresholds=thresholds)
        host_of(store, ALL, book)()
        book.keep()
        store.delete(*[record for _, record in store.records_since()][:3])
    assert len(store.settings("sendable-ids")) == 2


def test_the_sets_used_last_are_kept_and_no_more(store: RecordStore) -> None:
    for group in "abcdef":
        book = keeping()
        store.put([validate(plex(f"n/{group}", group=group))])
        host_of(store, group_module(group), book)()
        book.keep()
    assert len(store.settings("sendable")) == 4 + 1


# --- roots that are kept with a set (050, P16) ------------------------------------------------------------------------


def standard_of(store: RecordStore, book: PolicyBook) -> AdvertisementSet:
    found = host_of(store, ALL, book)()
    assert isinstance(found, Generation)
    return found.standard


def with_roots(store: RecordStore, *labels: str) -> list[list[Partition]]:
    """A set is kept of which some peers were told the roots."""
    book = keeping()
    standard = standard_of(store, book)
    told = [standard.summaries(label) for label in labels]
    book.keep()
    return told


def test_roots_of_a_set_are_kept_with_it(store: RecordStore, monkeypatch: pytest.MonkeyPatch) -> None:
    told = with_roots(store, "S", "it's \n")
    again = standard_of(store, keeping())
    with monkeypatch.context() as patch:
        patch.setattr(partitions, "partition_roots", refuse)
        assert [again.summaries("S"), again.summaries("it's \n")] == told
        assert len(told[0]) == again.partition_count == len({record[2:4] for record in again})
        assert told[0] != told[1]
    store.put([validate(blob(b"late"))])
    store.delete(validate(blob(b"1")).hash)
    later = standard_of(store, keeping())  # followed: only what changed is worked out
    touched = {validate(blob(one)).hash[2:4] for one in (b"late", b"1")}
    assert {one.prefix for one in later.known_summaries("S")} == {one.prefix for one in told[0]} - touched
    assert later.summaries("S") == standard_of(store, PolicyBook()).summaries("S")


def test_roots_come_to_a_set_that_was_kept_without_them_and_the_set_is_not_kept_again(
    store: RecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_roots(store)
    assert store.settings("sendable-roots") == {}
    monkeypatch.setattr(followedset, "keep", refuse)
    told = with_roots(store, *"abcdef")
    roots = standard_of(store, keeping())
    assert roots.known_labels() == list("abcd")  # no more than four
    assert [roots.summaries(label) for label in "abcdef"] == told
    monkeypatch.setattr(followedset, "keep_roots", refuse)
    with_roots(store, "a")


@pytest.mark.parametrize(
    "harm", [lambda data: data[:-1], lambda data: data[:70] + b"x" + data[71:], lambda _: b"", lambda data: data[:32]]
)
def test_kept_roots_that_are_broken_are_none(store: RecordStore, harm: Callable[[bytes], bytes]) -> None:
    told = with_roots(store, "S")
    [(name, data)] = store.settings("sendable-roots").items()
    store.put_setting("sendable-roots", name, harm(data))
    again = standard_of(store, keeping())
    assert again.known_labels() == []
    assert again.summaries("S") == told[0]


def test_kept_roots_of_another_set_are_none(store: RecordStore) -> None:
    with_roots(store, "S")
    [(name, old)] = store.settings("sendable-roots").items()
    gone = validate(blob(b"3"))
    store.delete(gone.hash)
    told = with_roots(store, "S")
    store.put_setting("sendable-roots", name, old)
    again = standard_of(store, keeping())
    assert again.known_labels() == []
    assert again.summaries("S") == told[0]


def test_roots_of_a_set_with_fields_are_not_kept(store: RecordStore) -> None:
    """They hang on the longest line too, which may be another tomorrow."""
    names = Module.author("SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- AdvertisedField(P,S,'Name',_,_).")
    book = keeping()
    found = host_of(store, names, book)()
    assert isinstance(found, Generation)
    found.standard.summaries("S")
    book.keep()
    assert not found.is_bare
    assert len(store.settings("sendable")) == 2
    assert store.settings("sendable-roots") == {}


@pytest.mark.parametrize("module", [ALL, group_module("u")])
@pytest.mark.parametrize("salts", [(None, None), (1, 2)])
def test_who_sends_nothing_still_recognises_what_it_holds(module: Module, salts: tuple[int | None, int | None]) -> None:
    """A client that only pulls, at an address that it has never seen: equal partitions are not listed to it."""
    sides = [
        RealSide(config_of(index, module, salt=salts[index], partition_threshold_bytes=0, exposures=exposures))
        for index, exposures in enumerate(((), EXPOSE_ALL))
    ]
    records = [plex(f"n/{n}") for n in range(60)]
    sides[0].put(*records[:-2])
    sides[1].put(*records)
    both = Pair(*sides)
    both.exchange()
    assert sides[0].have == sides[1].have
    listed = [fact for fact in sides[1].facts_sent() if fact.predicate.name == "Advertised"]
    assert 2 <= len(listed) <= 6


READS_RUNTIME = Module.author(
    "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S), Transport('unix:/a')."
)


def test_a_kept_set_asks_for_news_by_rules_that_read_runtime_facts(store: RecordStore) -> None:
    """What was evaluated in an earlier process knew other runtime facts; what is asked for now rests on these."""
    book = keeping()
    prepared, evaluate = questions(READS_RUNTIME)
    evaluate = replace(evaluate, runtime=replace(evaluate.runtime, transport="unix:/a"))
    for kept in (book, keeping()):
        host = LocalHost(store, config_of(0, READS_RUNTIME).terms, policies=kept)
        host.prepare(prepared, Call())
        host.evaluate(evaluate, Call())
        kept.keep()
    news = Advertisement(validate(blob(b"news")).hash, ())
    host.take_claims(asked.TakeClaims(added=[news], is_whole=True), Call())
    found = host.evaluate(replace(evaluate, max_requests=10, max_request_bytes=1 << 20), Call())
    assert list(found.requests) == [news.hash]


def test_a_long_listing_is_asked_about_once_and_not_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same link asks several times in a loop, and many links may ask at once."""
    store = filled()
    prepared, evaluate = questions(ALL)
    evaluate = replace(evaluate, max_requests=1000, max_request_bytes=1 << 20)
    host = LocalHost(store, config_of(0, ALL).terms, policies=PolicyBook())
    host.prepare(prepared, Call())
    host.evaluate(replace(evaluate, max_requests=0), Call())
    news = [Advertisement(validate(blob(b"news %d" % n)).hash, ()) for n in range(200)]
    host.take_claims(asked.TakeClaims(added=sorted(news), is_whole=True), Call())
    counted: list[int] = []
    ask = ByRecord.requestable

    def count(self: ByRecord, claims: list[Advertisement], *more: object) -> list[str] | None:
        counted.append(len(claims))
        return ask(self, claims, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(ByRecord, "requestable", count)
    for _ in range(3):
        assert len(host.evaluate(evaluate, Call()).requests) == 200
    assert counted == [200]
    host.take_claims(asked.TakeClaims(added=sorted(news[1:]), is_whole=True), Call())
    assert len(host.evaluate(evaluate, Call()).requests) == 199
    store.put([validate(blob(b"news 5"))])
    assert len(host.evaluate(evaluate, Call()).requests) == 198
    assert counted == [200, 199, 198]
