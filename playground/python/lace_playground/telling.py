"""What the page says about a stage: records, exchanges, gates, in plain values for JSON.

Rule: nothing is decided here, and nothing is left out without saying so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lace.errors import InvalidInput
from lace.notation.identifiers import RecordHash
from lace.porcelain.why import Walk, walk
from lace.records.model import Plex, Seal
from lace.runtime.link.session import Outcome
from lace.runtime.trace.telling import explanation
from lace.runtime.trace.trace import Passed as Captured
from lace.runtime.trace.trace import Told, TraceReader, Way
from lace.testing.simulator.scene import PEOPLE
from lace.testing.simulator.simulation import Simulated, side_of
from lace.testing.simulator.stage import Crossing, Round, Stage, key_of
from lace_playground.advising import advice
from lace_playground.naming import Names
from lace_playground.story import moments, verdict

Data = dict[str, Any]
MAX_ITEMS = 400
MAX_LINES = 100
MAX_RAW = 3_000
_WAYS: tuple[Way, Way] = ("out", "in")


def people() -> list[Data]:
    """Everybody who can sign here, with the verifier to write into rules."""
    return [{"name": person, "verifier": str(key_of(person).verifier)} for person in PEOPLE]


def stage_data(stage: Stage) -> Data:
    """Every lace as it is now, every run as a story, and the last one to its bytes."""
    names = Names(stage)
    return {
        "laces": [
            {"name": name, "verifier": str(key_of(name).verifier), "records": records_data(stage, number, names)}
            for number, name in enumerate(stage.names)
        ],
        "runs": [run_data(stage, run, names, is_last=run is stage.runs[-1]) for run in stage.runs],
        "verdict": verdict(stage, names),
    }


def records_data(stage: Stage, number: int, names: Names) -> list[Data]:
    """The records of one lace in the order in which they came."""
    came = [record for _, record in stage.laces[number].store.records_since()]
    return [{**record_data(stage, record, names), **_came(stage, number, record)} for record in came]


def _came(stage: Stage, number: int, record: RecordHash) -> Data:
    run, sender = stage.came[number].get(record, (None, None))
    return {"came": run, "of": None if sender is None else stage.names[sender]}


def record_data(stage: Stage, record: RecordHash, names: Names) -> Data:
    """A record, from whichever lace has it."""
    lace = next(lace for lace in stage.laces if lace.store.have(record))
    valid = lace.load(record)
    inner = valid.record
    signer = names.people.get(str(inner.signed_by), str(inner.signed_by)) if isinstance(inner, Seal) else ""
    plex = inner.plex if isinstance(inner, Seal) else inner
    assert isinstance(plex, Plex)
    text = plex.blob.data.decode("utf-8", "replace")
    return {
        "hash": str(record),
        "group": plex.group,
        "app": plex.app,
        "name": plex.name,
        "shown": names.shown(plex.name),
        "text": text,
        "signer": signer,
        "tai": str(plex.tai),
        "bytes": len(valid.stored),
    }


# --- exchanges ------------------------------------------------------------------------------------------------------


def run_data(stage: Stage, run: Round, names: Names, *, is_last: bool = True) -> Data:
    """How a run went, link by link."""
    return {
        "weather": run.weather.to_json(),
        "seconds": max((one.ns for one in run.crossings), default=0) / 1e9,
        "received": run.received,
        "crossings": [crossing_data(stage, one, names, is_last=is_last) for one in run.crossings],
    }


def crossing_data(stage: Stage, crossing: Crossing, names: Names, *, is_last: bool = True) -> Data:
    """How an exchange went: its story, what the wire did, and of the last run every item that passed."""
    told = list(_told(crossing))
    items = [_item(stage, crossing, one, names) for one in told] if is_last else []
    return {
        "pair": list(crossing.pair),
        "names": [stage.names[number] for number in crossing.pair],
        "seconds": crossing.ns / 1e9,
        "bytes": list(crossing.written),
        "wire": _wire_words(stage, crossing),
        "outcomes": [_outcome(outcome) for outcome in crossing.outcomes],
        "moments": moments(stage, crossing, told, names),
        "items": items[:MAX_ITEMS],
        "left_out": max(0, len(items) - MAX_ITEMS),
    }


def _told(played: Crossing) -> Iterator[Told]:
    teller, last = TraceReader(), 0
    for passed in played.passed:
        last = passed.ns
        yield from teller.feed(Captured(passed.ns, _WAYS[passed.source], passed.data))
    for way in _WAYS:
        yield from teller.end(last, way)


def _item(stage: Stage, played: Crossing, told: Told, names: Names) -> Data:
    source = _WAYS.index(told.way)
    data: Data = {
        "seconds": told.ns / 1e9,
        "who": stage.names[played.pair[source]],
        "kind": told.kind,
        "text": told.text,
        "size": told.size,
        "explained": explanation(told.kind, told.text, told.facts),
        "lines": list(told.facts[:MAX_LINES]),
        "raw": _raw(played, source, told),
    }
    if told.kind == "record":
        data["name"] = names.of(told.text)
    return data


def _raw(played: Crossing, source: int, told: Told) -> str:
    """The bytes as they arrived; bytes that are not text are spelled out."""
    stream = b"".join(passed.data for passed in played.passed if passed.source == source)
    part = stream[told.offset : told.offset + told.size if told.kind != "fault" else told.offset + MAX_RAW]
    return part[:MAX_RAW].decode("utf-8", "backslashreplace")


def _outcome(outcome: Outcome) -> Data:
    result = outcome.result
    return {
        "complete": outcome.is_complete,
        "words": _end_words(outcome),
        "abort": outcome.abort,
        "received": [str(record) for record in result.received_hashes],
        "sent": [str(record) for record in result.sent_hashes],
        "rejected": dict(result.rejected_hashes),
        "loops": result.loops,
    }


def _end_words(outcome: Outcome) -> str:
    if outcome.abort:
        return f"broke off: {outcome.detail or outcome.abort}"
    if outcome.result.limit_reached:
        return f"stopped at a limit: {outcome.result.limit_reached}"
    if outcome.result.closed_by_peer:
        return "the other side closed before everything was fetched"
    return "done: neither side's rules leave anything to fetch" if outcome.result.fixed_point else "closed early"


def _wire_words(stage: Stage, played: Crossing) -> list[str]:
    """What went wrong on the wire, if anything did."""
    words = []
    if played.plan.cut is not None:
        who, after = stage.names[played.pair[played.plan.cut[0]]], played.plan.cut[1]
        words.append(
            f"The wire was cut after {after} bytes of {who}."
            if played.is_cut
            else f"It would have been cut after {after} bytes of {who}, and ended before."
        )
    if played.plan.flip is not None:
        who, at, bit = stage.names[played.pair[played.plan.flip[0]]], played.plan.flip[1], played.plan.flip[2]
        is_done = played.flipped_at is not None
        words.append(
            f"Bit {bit} of byte {at} of {who} was flipped."
            if is_done
            else f"Bit {bit} of byte {at} of {who} would have been flipped, and was never written."
        )
    if played.plan.slow:
        words.append("Bytes came late and in pieces.")
    return words


def simulated_data(done: Simulated) -> Data:
    """What a simulation came to."""
    return {
        "passed": done.passed,
        "runs": len(done.runs),
        "calm": done.calm,
        "moved": done.moved,
        "broken": [{"rule": one.rule, "words": one.sentence} for one in done.broken],
        "holds": done.holds,
    }


# --- why ------------------------------------------------------------------------------------------------------------


def walk_data(stage: Stage, record: RecordHash, sender: int, receiver: int) -> Data:
    """Every gate on the way of a record from one lace to another, and what one could do here where it stops."""
    names = Names(stage)
    walked = walk(record, side_of(stage, sender), side_of(stage, receiver), now=stage.now)
    about = record_data(stage, record, names)
    return {
        "record": about,
        "from": stage.names[sender],
        "to": stage.names[receiver],
        "verdict": _walked_words(walked, stage.held(receiver), record),
        "stops": walked.stopped is not None,
        "gates": [
            {"side": gate.side, "gate": gate.name, "open": gate.passed, "said": gate.said, "because": gate.because}
            for gate in walked.gates
        ],
        "advice": advice(stage, walked, about, sender, receiver),
    }


def _walked_words(walked: Walk, held: set[RecordHash], record: RecordHash) -> str:
    stopped, receiver = walked.stopped, walked.receiver.called
    if record in held:
        return f"{receiver} has it already."
    if stopped is None:
        return f"Every gate is open: the next exchange brings it to {receiver}."
    return f"It stops at {stopped.side}: {stopped.sentence}."


def error_data(error: InvalidInput) -> Data:
    """An error or a doubt about a rule text, with its place; the first line for what is missing from all of it."""
    line, column, advice = (getattr(error, name, otherwise) for name, otherwise in _PLACE)
    return {"line": line, "column": column, "message": error.message, "advice": advice, "doubt": False}


_PLACE = (("line", 1), ("column", 1), ("advice", ""))
