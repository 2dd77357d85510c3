"""The ways of a store give what its plain ways give (docs/ways.md); each threshold is handed in at opening."""

from __future__ import annotations

from pathlib import Path

import pytest

from lace.store import open_store
from lace.thresholds import StoreThresholds
from store.samples import assortment, blob, plex

NEVER = 1 << 40
PLAIN = StoreThresholds(bulk_texts=NEVER, whole_dictionary_texts=NEVER, long_body_bytes=NEVER, small_write_bytes=0)
WAYS = {
    "bulk": StoreThresholds(bulk_texts=1, matrix_texts=1, run_page_keys=3, run_fanout=2, looked_up_pages=0),
    "a dictionary read whole": StoreThresholds(whole_dictionary_texts=1),
    "long bodies": StoreThresholds(long_body_bytes=1),
    "short log": StoreThresholds(small_write_bytes=NEVER),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_store_answers_alike_whichever_way_it_took(way: str, tmp_path: Path) -> None:
    records = [*assortment(), blob(b""), blob(bytes(70_000)), *(plex(f"n/{number}") for number in range(30))]
    strangers = [plex(f"never stored/{number}").hash for number in range(2000)]
    found = []
    for name, thresholds in {"plain": PLAIN, "way": WAYS[way]}.items():
        with open_store(tmp_path / name, create=True, thresholds=thresholds) as store:
            for start in range(0, len(records), 7):
                store.put(records[start : start + 7])
            store.delete(records[1].hash, records[-1].hash)
            store.put([records[-1]])
            asked = [*strangers, *(record.hash for record in records)]
            found.append(
                (
                    [*store.bodies_since()],
                    store.present(asked),
                    store.codes([str(one) for one in asked]),
                    [store.get(record.hash) for record in records],
                    [*store.entries()],
                    store.check_integrity(),
                )
            )
    assert found[0] == found[1]
    assert found[0][-1] == []
