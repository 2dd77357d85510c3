"""Column segments: encoding, packing, folding and filtering never change what they say."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.datalog.language.syntax import Fact
from lace.datalog.source import Codes
from lace.errors import StoreError
from lace.facts.derive import derive_facts
from lace.facts.predicates import RECORD_PREDICATES
from lace.records.validate import ValidRecord
from lace.store import StoreCursor
from lace.store.columns.segments.encode import encode_batch
from lace.store.columns.segments.packing import pack, unpack
from lace.store.columns.segments.segment import Segment, as_ids, merge, picked, translate, without
from lace.store.columns.segments.view import SegmentView
from store.samples import assortment, plex

batches = st.lists(st.sampled_from(assortment()), max_size=8, unique_by=lambda record: record.hash)


class Texts:
    """A dictionary for segments of several batches."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {"0": 0}

    def take(self, records: list[ValidRecord], first_id: int = 1) -> Segment:
        batch = encode_batch(records)
        table = [self.known.setdefault(text, len(self.known)) for text in batch.texts]
        return translate(batch.segment, table, as_ids(range(first_id, first_id + len(batch.segment))))

    def codes(self, texts: list[str]) -> list[int]:  # type: ignore[override]
        return [self.known.get(text, -1) for text in texts]

    def texts(self, codes: Codes) -> list[str]:
        listed = list(self.known)
        return [listed[code] for code in codes]

    def facts(self, *segments: Segment) -> Counter[Fact]:
        view = SegmentView(self, len(self.known), segments, StoreCursor())  # type: ignore[arg-type]
        found = Counter(Fact(predicate, row) for predicate in RECORD_PREDICATES for row in view.iterate(predicate))
        assert {fact for fact, count in found.items() if count > 1} == set()
        return found


def expected(records: list[ValidRecord]) -> Counter[Fact]:
    return Counter(fact for record in records for fact in derive_facts(record))


@given(records=batches)
def test_a_batch_says_what_its_records_say(records: list[ValidRecord]) -> None:
    texts = Texts()
    assert texts.facts(texts.take(records)) == expected(records)


@given(first=batches, second=batches, data=st.data())
def test_merging_picking_and_dropping(first: list[ValidRecord], second: list[ValidRecord], data: st.DataObject) -> None:
    second = [record for record in second if record not in first]
    records = [*first, *second]
    texts = Texts()
    merged = merge([texts.take(first), texts.take(second, len(first) + 1)])
    assert texts.facts(merged) == expected(records)
    assert list(merged.ids) == list(range(1, len(records) + 1))
    chosen = data.draw(st.sets(st.sampled_from(records))) if records else set()
    codes = {texts.known[str(record.hash)] for record in chosen}
    assert texts.facts(without(merged, codes)) == expected([record for record in records if record not in chosen])
    assert texts.facts(picked(merged, codes)) == expected([record for record in records if record in chosen])
    assert texts.facts(unpack(pack(merged))) == expected(records)


def test_a_record_of_five_hundred_names_shares_one_group() -> None:
    names = tuple((f"N-{number:03}", "v") for number in range(500))
    records = [plex(f"wide/{number}", headers=(*names, ("N-001", str(number)))) for number in range(3)]
    texts = Texts()
    segments = [texts.take([record], at + 1) for at, record in enumerate(records)]
    assert all(len(segment.groups) < 80 for segment in segments)
    assert len(merge(segments).groups) < 80
    assert texts.facts(*segments) == texts.facts(merge(segments)) == expected(records)


def test_damaged_segment_bytes_are_refused() -> None:
    packed = pack(encode_batch(assortment()).segment)
    for damaged in (b"XSEG" + packed[4:], packed[:-4], packed + bytes(4)):
        with pytest.raises(StoreError):
            unpack(damaged)
