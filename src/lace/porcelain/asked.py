"""Why a record does or does not move between us and a peer that was just asked: `lace why --address`.

Rule: what the peer brought (its rules, its list, what it asked for) is known; what it keeps to itself stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lace.facts.predicates import SIGNED_BY
from lace.facts.predicates import TAI as TAI_FIELD
from lace.interlace.claims.advertisement import Advertisement
from lace.notation.identifiers import RecordHash, Verifier
from lace.notation.tai import TAI
from lace.porcelain.preview import rows
from lace.porcelain.why import Gate, Walk, WhySide, walk, walk_offer
from lace.records.tip import TipPolicy, choose_tip, newest_first
from lace.runtime.local.preview import Preview
from lace.values import dataclass


def walk_asked(record: RecordHash, here: WhySide, preview: Preview, peer: Verifier | None, *, now: TAI) -> Walk:
    """Walk a record to the peer of a preview that watched it, or from there to us if we lack it."""
    there = WhySide(called="there", module=preview.their_module, verifier=peer)
    if here.lace is None or not here.lace.store.have(record):
        return walk_offer(record, there, here, now=now, offer=_listed(record, preview))
    walked = walk(record, here, there, now=now)
    if walked.stopped is not None:
        return walked
    return replace(walked, gates=[*(gate for gate in walked.gates if gate.passed), _answer(record, preview)])


@dataclass(frozen=True, slots=True)
class _Listed:
    tai: str
    hash: str
    signer: str | None


def tip_listed(coordinate: str, offered: Iterable[Advertisement], policy: TipPolicy) -> str | None:
    """The tip of a coordinate among the records that a peer lists there."""
    there = [
        _Listed(row[TAI_FIELD], row.hash, row[SIGNED_BY] or None)
        for row in rows(offered)
        if row.coordinate == coordinate
    ]
    tip = choose_tip(newest_first(there), policy)
    return None if tip is None else tip.hash


def _listed(record: RecordHash, preview: Preview) -> list[tuple[str, int, str]] | None:
    found = next((claim for claim in preview.offered if claim.hash == record), None)
    return None if found is None else [(name, int(position), value) for name, position, value in found.fields]


def _answer(record: RecordHash, preview: Preview) -> Gate:
    """What the peer itself did when we listed the record to it."""
    if record in preview.asked_for:
        return Gate("there", "asked for", True, "we listed it just now, and it was asked for")
    if preview.has_watched:
        return Gate("there", "missing", False, "it is stored there already, so it is not asked for")
    said = "we listed it, and it was not asked for: it is there without being shown to us, or a condition of its rules"
    said += " does not hold over the records that are there, or that side takes nothing from us"
    remedy = "prove a key it knows (--key over ws or wss), or have its owner look: `lace why` there tells the rest"
    return Gate("there", "asked for", False, said, remedy=remedy)
