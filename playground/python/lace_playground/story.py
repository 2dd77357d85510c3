"""An exchange told as a story: moments in their order, each a sentence with what one would see on the wire.

Rule: every moment stands for bytes that passed, for what the wire did to them, or for how a side ended; nothing is made
up between them. Names stand for hashes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from lace.facts.predicates import ADVERTISED, MAY_REQUEST
from lace.interlace import vocabulary
from lace.runtime.trace.trace import Told
from lace.testing.simulator.simulation import still_to_come
from lace.testing.simulator.stage import Crossing, Stage
from lace_playground.naming import Names

Moment = dict[str, Any]
MAX_MOMENTS = 120  # of one exchange
MAX_LEFT = 20
_ASKED = re.compile(rf"^{MAY_REQUEST.name}\('([^']+)'\)")
_OFFERED = re.compile(rf"^{ADVERTISED.name}\('([^']+)'")
_OPENING = ("preface", "resource", vocabulary.EXCHANGE_OPERAND.name)
_SUMS = "Difference"


def moments(stage: Stage, crossing: Crossing, told: Sequence[Told], names: Names) -> list[Moment]:
    """What happens on a link in one run."""
    return _Teller(stage, crossing, told, names).tell()


class _Teller:
    """Tells one crossing."""

    def __init__(self, stage: Stage, crossing: Crossing, told: Sequence[Told], names: Names) -> None:
        self._crossing, self._told, self._names = crossing, told, names
        self._who = [stage.names[number] for number in crossing.pair]
        self._hostile = [stage.given[number].hostile for number in crossing.pair]

    def tell(self) -> list[Moment]:
        """All moments by time; where there are too many the last ones are left out and the end stays."""
        found = [*self._said(), *self._broken()]
        found.sort(key=lambda moment: moment["at"])
        return [*found[:MAX_MOMENTS], self._end()]

    def _moment(self, ns: int, source: int, kind: str, words: str, records: Sequence[str] = (), **more: Any) -> Moment:
        pair = self._crossing.pair
        return {"at": ns / 1e9, "from": pair[source], "to": pair[1 - source], "kind": kind, "words": words,
                "records": list(records), **more}  # fmt: skip

    # what was said

    def _said(self) -> Iterator[Moment]:
        for (ns, way), items in groupby(self._told, lambda one: (one.ns, one.way)):
            yield from self._block(ns, 0 if way == "out" else 1, list(items))

    def _block(self, ns: int, source: int, items: Sequence[Told]) -> Iterator[Moment]:
        here, there = self._who[source], self._who[1 - source]
        lines = [line for item in items for line in item.facts]
        heads = {line.partition("(")[0] for line in lines} | {item.kind for item in items}
        if heads & {"preface", vocabulary.EXCHANGE_OPERAND.name}:
            yield self._moment(ns, source, "talk", f"{here} tells {there} by which rules {here} exchanges.")
        elif vocabulary.HELLO_EXCHANGE_PLAN.name in heads:
            yield self._moment(ns, source, "talk", f"{here} has worked out the same plan from both rules.")
        if offered := [match[1] for line in lines if (match := _OFFERED.match(line))]:
            yield self._moment(ns, source, "talk", f"{here} offers {self._list(offered)}.", offered)
        elif any(head.startswith(_SUMS) for head in heads):
            yield self._moment(ns, source, "talk", f"{here} sums up what {here} has to offer, without listing it.")
        if asked := [match[1] for line in lines if (match := _ASKED.match(line))]:
            yield self._moment(ns, source, "talk", f"{here} asks for {self._list(asked)}.", asked)
        for item in items:
            if item.kind == "record":
                yield self._record(ns, source, item.text)

    def _record(self, ns: int, source: int, record: str) -> Moment:
        here, there, name = self._who[source], self._who[1 - source], self._names.of(record)
        result = self._crossing.outcomes[1 - source].result
        if record in {str(one) for one in result.received_hashes}:
            return self._moment(ns, source, "record", f"{name} crosses from {here} to {there}.", [record], stored=True)
        if (reason := {str(key): why for key, why in result.rejected_hashes.items()}.get(record)) is not None:
            words = f"{name} reaches {there} spoiled: {_plainly(str(reason))}. {there} does not store it."
            return self._moment(ns, source, "refused", words, [record], stored=False)
        words = f"{name} reaches {there}, and the link ends before {there} has stored it."
        return self._moment(ns, source, "refused", words, [record], stored=False)

    # what the wire did

    def _broken(self) -> Iterator[Moment]:
        played = self._crossing
        if played.plan.cut is not None and played.cut_at is not None:
            end, after = played.plan.cut
            words = f"The wire breaks after {_bytes(after)} of what {self._who[end]} says."
            last = max((one.ns for one in self._of(end)), default=0)  # what was sent before it still arrives
            yield self._moment(max(played.cut_at, last), end, "cut", words, self._under_way())
        if played.plan.flip is not None and played.flipped_at is not None:
            end, at, _ = played.plan.flip
            ns, what, record = self._what_at(end, at)
            words = f"One bit flips on its way from {self._who[end]} to {self._who[1 - end]}: in {what}."
            yield self._moment(max(ns - 1, played.flipped_at), end, "flip", words, [record] if record else [])

    def _under_way(self) -> list[str]:
        """What was asked for and did not arrive."""
        asked = [match[1] for one in self._told for line in one.facts if (match := _ASKED.match(line))]
        come = {one.text for one in self._told if one.kind == "record"}
        return [record for record in asked if record not in come]

    def _of(self, end: int) -> list[Told]:
        way = ("out", "in")[end]
        return [one for one in self._told if one.way == way]

    def _what_at(self, end: int, at: int) -> tuple[int, str, str]:
        """When a byte arrives, the item in which it is, in words, and its record if it is one."""
        hit = next((one for one in self._of(end) if one.offset <= at < one.offset + max(one.size, 1)), None)
        who = self._who[end]
        if hit is None or hit.kind == "fault":
            return (hit.ns if hit else 0), f"something {who} says", ""
        if hit.kind == "record":
            return hit.ns, f"the record {self._names.of(hit.text)}", hit.text
        return hit.ns, self._part(hit).format(who=who), ""

    def _part(self, told: Told) -> str:
        """What an item is, in words."""
        head = told.facts[0].partition("(")[0] if told.facts else told.kind
        if head in _OPENING:
            return "the rules of {who}"
        if head.startswith((ADVERTISED.name, _SUMS)):
            return "what {who} offers"
        if head == MAY_REQUEST.name:
            return "what {who} asks for"
        return "the greeting of {who}" if head.startswith("Hello") else "the line that ends a part"

    # how it ended

    def _end(self) -> Moment:
        played = self._crossing
        if played.is_cut:
            return self._moment(played.ns, 0, "broke", self._after_cut())
        if "silent" in self._hostile:
            quiet = self._hostile.index("silent")
            patience = f"{self._who[1 - quiet]} waits {played.ns / 1e9:.0f} s and gives up."
            return self._moment(played.ns, quiet, "broke", f"{self._who[quiet]} says nothing more. {patience}")
        for number, outcome in enumerate(played.outcomes):
            if outcome.abort:
                why = outcome.detail or outcome.abort
                said = f"{self._who[number]} notices ({why}), stores nothing of it and hangs up."
                return self._moment(played.ns, number, "broke", said)
        refused = [
            self._names.of(str(record)) for outcome in played.outcomes for record in outcome.result.rejected_hashes
        ]
        if refused:
            return self._moment(
                played.ns, 0, "done", f"The exchange ends; {_all(refused)} did not come over this link."
            )
        if not all(outcome.is_complete for outcome in played.outcomes):
            return self._moment(played.ns, 0, "broke", "One side hangs up early.")
        both = " and ".join(self._who)
        return self._moment(played.ns, 0, "done", f"{both} have nothing more to ask of each other.")

    def _after_cut(self) -> str:
        """What stays and what comes another time."""
        come = [str(one) for outcome in self._crossing.outcomes for one in outcome.result.received_hashes]
        waiting = self._under_way()
        both = " and ".join(self._who)
        kept = f" {self._list(come)} had arrived and stays." if len(come) == 1 else ""
        if len(come) > 1:
            kept = f" {self._list(come)} had arrived and stay."
        rest = f" {self._list(waiting)} will come with the next exchange." if waiting else ""
        return (
            f"{both} hear nothing more and give up.{kept}{rest}"
            if kept or rest
            else f"{both} give up; nothing had moved."
        )

    def _list(self, records: Sequence[str]) -> str:
        return _all([self._names.of(record) for record in records])


def verdict(stage: Stage, names: Names) -> Moment | None:
    """How things are after the last run: one verdict, from what the laces hold and not from how links ended."""
    if not stage.runs:
        return None
    last = stage.runs[-1]
    left = list(still_to_come(stage))
    broke = any(not outcome.is_complete for one in last.crossings for outcome in one.outcomes)
    down = {tuple(pair) for pair in last.weather.down}
    told = [
        {"record": names.of(str(record)), "from": stage.names[sender], "to": stage.names[receiver]}
        for sender, receiver, record in left[:MAX_LEFT]
    ]
    kept_apart = bool(left) and all((min(one, other), max(one, other)) in down for one, other, _ in left)
    return {"left": len(left), "still": told, **_verdict(stage, len(left), told, broke, kept_apart)}


def _verdict(stage: Stage, left: int, told: Sequence[Moment], broke: bool, kept_apart: bool) -> Moment:
    if left:
        some = _all([f"{one['record']} to {one['to']}" for one in told])
        records = "1 record is" if left == 1 else f"{left} records are"
        why = "A link broke off: exchange again." if broke else "Records cross one link per exchange: exchange again."
        if kept_apart:
            why = "Links that are down keep the laces apart: mend them and exchange again."
        return {"kind": "warn", "title": "Not finished", "words": f"{records} still to come: {some}. {why}"}
    two = len(stage.laces) == 2
    everything = "Both sides have" if two else "Every lace has"
    if any(lace.hostile for lace in stage.given):
        words = "Every honest lace has what the others would give it, whatever the hostile one did."
        return {"kind": "good", "title": "Converged", "words": words}
    after = " The link broke off after the last record had arrived." if broke else ""
    return {
        "kind": "good",
        "title": "Converged",
        "words": f"{everything} every record that the rules let through.{after}",
    }


def _all(words: Sequence[str], most: int = 6) -> str:
    """A list as people write it."""
    shown = [*words[:most], f"{len(words) - most} more"] if len(words) > most else list(words)
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _bytes(count: int) -> str:
    return f"{count} bytes" if count < 1000 else f"{count / 1000:.1f} kB"


def _plainly(reason: str) -> str:
    return "its bytes do not match its hash" if "digest" in reason or "hash" in reason else reason
