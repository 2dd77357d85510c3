"""The way of one record to a peer, gate by gate: `lace why` as a part of the exposure page."""

from __future__ import annotations

from lace.inspector.html import Markup, join, tag
from lace.inspector.opened import OpenedLace
from lace.inspector.page import Data
from lace.inspector.words import notice, prose, section, short
from lace.notation.identifiers import Verifier
from lace.policy.exposure import Exposure
from lace.policy.operand import Module
from lace.porcelain.why import Gate, Walk, WhySide, known_target, walk
from lace.runtime.clock import SystemClock

_MARKS = {True: ("open", "good"), False: ("shut", "bad"), None: ("cannot be known here", "warn")}


def walk_to(
    opened: OpenedLace,
    target: str,
    modules: tuple[Module, Module],
    exposures: tuple[Exposure, ...],
    verifier: Verifier | None,
    *,
    send_gate: bool,
) -> Walk:
    """Walk a record of a lace to a viewer, or to one who proves nobody; its lace is not known, its rules are."""
    here = WhySide(called="here", lace=opened.lace, module=modules[0], exposures=exposures)
    there = WhySide(called="there", module=modules[1], verifier=verifier)
    record = known_target(opened.lace, target)
    return walk(record, here, there, now=SystemClock().tai(), send_gate=send_gate)


def walk_data(walked: Walk) -> Data:
    """The gates for programs."""
    stopped = walked.stopped
    gates = [
        {"side": gate.side, "gate": gate.name, "open": gate.passed, "said": gate.said, "because": gate.because,
         "remedy": gate.remedy}
        for gate in walked.gates
    ]  # fmt: skip
    stops = {"stops": stopped.name, "said": stopped.said} if stopped else {"stops": None, "said": None}
    return {"record": walked.record, **stops, "gates": gates}


def show_walk(walked: Walk) -> Markup:
    """The gates in order, and what the last of them means."""
    stopped = walked.stopped
    if stopped is not None:
        verdict = notice(
            "bad", join(tag("strong", prose(f"It stops {stopped.side}: {stopped.sentence}. ")), prose(stopped.remedy))
        )
    elif walked.unknown:
        verdict = notice("warning", "Every gate that can be told of from here is open.")
    else:
        verdict = notice("good", "Every gate is open: an exchange would bring it over.")
    items = [tag("li", _gate(gate)) for gate in walked.gates]
    return section(
        "The way of one record", verdict, tag("ol", items, class_="gates"), note=tag("code", short(walked.record))
    )


def _gate(gate: Gate) -> Markup:
    said, kind = _MARKS[gate.passed]
    title = gate.said if gate.passed is False else gate.name
    head = join(tag("strong", prose(title)), " ", tag("span", f"{gate.side}, {said}", class_=f"badge {kind}"))
    words = tag("p", prose(gate.said), class_="note") if title != gate.said and gate.said not in ("yes", "") else None
    if not gate.because:
        return join(head, words)
    return join(tag("details", tag("summary", head), tag("pre", gate.because), open=gate.passed is False), words)
