"""What may be asked of a peer, given its listing: the same as the machine's own evaluator says."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lace.errors import InvalidInput
from lace.facts.derive import field_occurrences
from lace.interlace.claims.advertisement import Advertisement, FieldClaim, advertisement_facts, canonical_fields
from lace.interlace.claims.partitions import ClaimChanges
from lace.interlace.effects import PreparePolicy
from lace.interlace.host import Call
from lace.interlace.runtimefacts import RuntimeFacts
from lace.interlace.setup.hello import ALL_FIELDS
from lace.interlace.setup.terms import Terms
from lace.notation.factline import format_fact
from lace.notation.tai import TAI
from lace.policy.compile import agree
from lace.policy.exposure import expose_all
from lace.policy.lower import lower
from lace.policy.operand import Module
from lace.policy.origin import Source, Viewer
from lace.records.model import Blob, ValidRecord
from lace.runtime.rules.evaluator import StoreEvaluator
from lace.runtime.rules.policy import prepare
from lace.spark.jobs.evaluate import PeerPolicy
from lace.spark.jobs.peer_listing import parsed_lines, require_sound, require_utf8
from lace.spark.pipeline import Pipeline, PipelineSettings
from lace.store.memory import MemoryStore
from spark.archives import make_records, write_bundle

pytestmark = pytest.mark.spark

# Ours: what stands under u and was signed by a key that some record here was signed by; theirs: everything.
OURS = Module.author("""
SelectHave(P) :- Have(P), Field(P,'Group',_,'u').
Known(V) :- Field(_,'Signed-By',_,V).
Mine(P,S,V) :- AdvertisedField(P,S,'Group',_,'u'), AdvertisedField(P,S,'Signed-By',_,V).
SelectAdvertised(P,S) :- Advertised(P,S), Mine(P,S,V), Known(V).
""".strip())  # fmt: skip
THEIRS = Module.author("SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S).")
PLAN = agree(OURS, THEIRS)
VIEWER = Viewer(PLAN.operands[1].origin)
PEER = PeerPolicy(name="ann", policy=lower(PLAN, local_index=0, viewer=VIEWER, exposures=[expose_all()]))
START = TAI("1700000000:000000000")


def claims_of(records: Iterable[ValidRecord]) -> list[Advertisement]:
    return [
        Advertisement(
            str(valid.hash), canonical_fields(FieldClaim(n, str(i), value) for n, i, value in field_occurrences(valid))
        )
        for valid in records
    ]


def listing_text(records: Iterable[ValidRecord], source: str = "Opq_Z") -> str:
    facts = [fact for claim in claims_of(records) for fact in advertisement_facts(claim, source)]
    return "".join(format_fact(fact) + "\n" for fact in reversed(facts))  # any order will do


def machine_says(here: list[ValidRecord], there: list[ValidRecord]) -> set[str]:
    """What the evaluator of a link would request."""
    store = MemoryStore()
    store.put(here)
    terms = Terms(module=PLAN.operands[0].module, exposures=(expose_all(),))
    asked = PreparePolicy(
        plan=PLAN,
        local_index=0,
        viewer=VIEWER,
        schema=ALL_FIELDS,
        send_gate=True,
        exposures=(expose_all(),),
        own_source=Source("Opq_o"),
        peer_source=Source(PEER.source),
        record_formats=frozenset({"H3"}),
    )
    evaluator = StoreEvaluator(store, prepare(asked, terms))
    runtime = RuntimeFacts(
        here=None, peer=None, transport="", encrypted=False, start=START, tick=START, skew_seconds=0
    )  # fmt: skip
    return set(evaluator.evaluate(runtime, ClaimChanges(claims_of(there), []), Call()).request_added)


def test_what_may_be_asked_of_a_peer_is_what_its_machine_would_be_asked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    records = make_records(60, seed=21)
    here, there = records[:20], records[15:]
    write_bundle(tmp_path / "here.bundle", here)
    write_bundle(tmp_path / "there.bundle", there)
    (tmp_path / "ann.facts").write_text(listing_text(there), encoding="utf-8")
    theirs = PipelineSettings(output=tmp_path / "theirs", inputs=[tmp_path / "there.bundle"])
    Pipeline(spark, theirs, lambda *_: None).run(["ingest", "validate"])
    expected = machine_says(here, there)
    assert set() < expected < {str(valid.hash) for valid in there}
    for listing in ("ann.facts", "theirs"):
        settings = PipelineSettings(
            output=tmp_path / "out",
            inputs=[tmp_path / "here.bundle"],
            peers=[PEER],
            listings={"ann": tmp_path / listing},
        )
        ours = Pipeline(spark, settings, lambda *_: None)
        done = ours.run(["ingest", "validate", "evaluate"])
        assert {row["hash"] for row in ours.table("requestable").collect()} == expected
        assert done.steps["evaluate"].counts["ann requestable"] == len(expected)


P, Q = Blob(b"p").hash, Blob(b"q").hash


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        ([f"Advertised('{P}','Opq_A')", "Advertised(P)"], "listing-line"),
        ([f"Have('{P}')"], "listing-line"),
        (["Advertised('nothing','Opq_A')"], "listing-line"),
        ([f"Advertised('{P}','Opq_A')", f"AdvertisedField('{P}','Opq_A','Group','x','u')"], "listing-line"),
        ([f"Advertised('{P}','Opq_A')", f"Advertised('{Q}','Opq_B')"], "listing-source"),
        ([f"Advertised('{P}','Opq_A')", f"AdvertisedField('{Q}','Opq_A','Group','0','u')"], "listing-orphan"),
        (
            [f"Advertised('{P}','Opq_A')", *(f"AdvertisedField('{P}','Opq_A','Group','0','{v}')" for v in "uv")],
            "listing-contradiction",
        ),
    ],
)
def test_a_listing_that_no_peer_may_send_is_refused(spark: SparkSession, lines: list[str], rule: str) -> None:
    claims = parsed_lines(spark.createDataFrame([(line,) for line in lines], "value string"))
    with pytest.raises(InvalidInput) as refused:
        require_sound(claims, Path("listing"))
    assert refused.value.rule == rule


def test_a_listing_of_nobody_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    settings = PipelineSettings(output=tmp_path / "out", peers=[PEER], listings={"bob": tmp_path})
    with pytest.raises(InvalidInput, match="a listing of no peer: bob"):
        Pipeline(spark, settings, lambda *_: None)


def test_a_listing_that_is_no_text_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "listing"
    path.write_bytes(f"Advertised('{P}','Opq_A')\n".encode() + b"Advertised('\xff','Opq_A')\n")
    with pytest.raises(InvalidInput) as refused:
        require_utf8(path)
    assert (refused.value.rule, refused.value.place) == ("listing-utf8", f"{path}:2")
