"""The bytes of whole exchanges, recorded: a change inside a machine or its host must not show on the wire (050, 060).

`python tests/runtime/test_wire_bytes.py` prints the table anew, for a change of the protocol that is meant.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

sys.path[:0] = [] if __name__ != "__main__" else [str(Path(__file__).parents[1])]

from interlace.pair import ALL, VERIFIER_A, VERIFIER_B, blob, config_of, group_module, plex  # noqa: E402
from lace.interlace.setup.terms import Link  # noqa: E402
from lace.limits import ExchangeLimits  # noqa: E402
from lace.notation.digest import digest  # noqa: E402
from lace.policy.operand import Module  # noqa: E402
from lace.records.validate import validate  # noqa: E402
from lace.store.memory import MemoryStore  # noqa: E402
from lace.thresholds import ClaimThresholds, RuleThresholds  # noqa: E402
from runtime.memory_link import End, MemoryLink  # noqa: E402

RECORDED = Path(__file__).with_name("wire_bytes.json")
COUNT = 40
MANY_LOOPS = {0, 11, 24, 27, 38}  # seconds each: short listings, and so a loop for every few records

BY_CLAIM = Module.author(
    "SelectHave(P) :- Have(P), Advertised(P,_).\nSelectHave(P) :- Have(P), Field(P,'Group',_,'u').\n"
    "SelectAdvertised(P,S) :- Advertised(P,S)."
)
MODULES = (ALL, group_module("u"), group_module("v"), BY_CLAIM)


def exchange_bytes(seed: int, **terms: object) -> list[tuple[int, str]]:
    """Length and digest of what each side wrote, of two exchanges one after the other between the same stores."""
    rng = random.Random(seed)
    pool = [
        plex(f"n{number}", group=rng.choice("uv"), data=bytes([number % 250]))
        if number % 5
        else blob(number.to_bytes(4))
        for number in range(rng.choice([0, 3, 40, 150]))
    ]
    stores = []
    for _ in range(2):
        store = MemoryStore()
        store.put([validate(record) for record in pool if rng.random() < rng.choice([0.3, 0.9, 0.98])])
        stores.append(store)
    limits = ExchangeLimits()
    if rng.random() < 0.3:
        limits = ExchangeLimits(max_advertisement_records_listed=rng.choice([3, 30]), max_loop_iterations=100)
    options = {
        "partitions": rng.random() < 0.8 or limits != ExchangeLimits(),
        "partition_threshold_bytes": rng.choice([0, 0, 600, 1 << 20]),
        "limits": limits,
        "max_requests": rng.choice([7, 1000]),
        "cursor_key": rng.choice(["", "there"]),
        **terms,
    }
    modules = rng.choice(MODULES), rng.choice(MODULES)
    links = [Link(), Link()]
    if rng.random() < 0.4:
        links = [
            Link(here=here, peer=peer, signs_hello=True, peer_signs_hello=True)
            for here, peer in ((VERIFIER_A, VERIFIER_B), (VERIFIER_B, VERIFIER_A))
        ]
    written = []
    for _ in range(2):
        ends = [
            End(config_of(index, modules[index], link=links[index], **options), stores[index]) for index in range(2)
        ]
        MemoryLink(ends, piece=rng.choice([100, 1 << 20])).run()
        written += [(len(end.sent), digest(bytes(end.sent)).hex()[:16]) for end in ends]
        stores[0].put([validate(plex("later", data=b"more"))])
    return written


@pytest.mark.parametrize("seed", [pytest.param(n, marks=[pytest.mark.long] * (n in MANY_LOOPS)) for n in range(COUNT)])
def test_what_two_sides_write_is_what_they_wrote_when_it_was_recorded(seed: int) -> None:
    assert [list(side) for side in exchange_bytes(seed)] == json.loads(RECORDED.read_text())[seed]


@pytest.mark.parametrize("seed", sorted(set(range(COUNT)) - MANY_LOOPS))
def test_the_same_is_written_of_a_set_in_columns(seed: int) -> None:
    ways = {
        "claim_thresholds": ClaimThresholds(column_claims=1),
        "rule_thresholds": RuleThresholds(min_claim_columns=0),
    }
    written = exchange_bytes(seed, **ways)
    assert [list(side) for side in written] == json.loads(RECORDED.read_text())[seed]


@pytest.mark.clause("070-CAP-03", "070-TAKE-01")
@pytest.mark.parametrize("seed", [n for n in range(COUNT) if n not in MANY_LOOPS][::3])
def test_who_would_take_unasked_and_does_not_compare_writes_the_same(seed: int) -> None:
    assert [list(side) for side in exchange_bytes(seed, takes=256)] == json.loads(RECORDED.read_text())[seed]


if __name__ == "__main__":
    RECORDED.write_text("[\n" + ",\n".join(json.dumps(exchange_bytes(seed)) for seed in range(COUNT)) + "\n]\n")
