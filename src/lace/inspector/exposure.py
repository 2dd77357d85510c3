"""The exposure page: what a viewer sees, what it would be sent, the plan, and every gate on one record's way to it.

Rule: the gates that an exchange lowers decide here too, over one snapshot. What a peer has not shown yet (its
advertisements) counts as empty, and the page says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from lace.datalog.engine import evaluate
from lace.datalog.language.syntax import Atom, Positive, Predicate, Program, Variable
from lace.datalog.language.validate import CheckedProgram, check_program
from lace.datalog.planning.stratify import reachable
from lace.datalog.planning.unfold import unfold
from lace.errors import InvalidInput, LaceError
from lace.facts.predicates import CAN_QUERY_RECORD, HAVE
from lace.inspector.answers import TYPING_LIMITS
from lace.inspector.browse import crumbs, record_table, summaries
from lace.inspector.html import Markup, join, tag
from lace.inspector.inspected import OpenedLace
from lace.inspector.names import Names, fact, speller
from lace.inspector.page import Data, Page
from lace.inspector.rules import error_data, row_pager
from lace.inspector.widgets import copyable, count, empty, fields, figure, fold, notice, prose, short, table
from lace.notation.decimal import natural
from lace.notation.identifiers import Verifier
from lace.people.kinds import PolicyKind
from lace.policy.compile import ExchangePlan, agree
from lace.policy.exposure import Exposure
from lace.policy.lower import LOWERED_PROFILE, LoweredPolicy, LoweringOptions, ViewKind, lower
from lace.policy.notice import Notice, exposure_notices
from lace.policy.operand import Module
from lace.policy.origin import Viewer, is_opaque
from lace.policy.provenance import LoweredRule
from lace.porcelain.exchange import exposures, selector
from lace.porcelain.policy import LacePolicy
from lace.porcelain.query import base_of
from lace.porcelain.visibility import runtime_facts
from lace.porcelain.why import Gate, Walk, WhySide, known_target, walk
from lace.runtime.clock import SystemClock
from lace.values import dataclass

T = TypeVar("T")
Part = tuple[int, Sequence[str]]  # how many records, and some of them
HERE = "Exposure"
_EVERY_RECORD = (Positive(Atom(HAVE, (Variable("P"),))),)  # the body of a rule that lowering writes, variable and all
_ROWS = 20  # of each list: there are two, and the plan below them
_RULES = ("ours", "theirs", "expose")
_WORDS = "all, a coordinate such as //u//notes//, a hash, or rules"


@dataclass(frozen=True, slots=True)
class ExposureForm:
    """What was written into the form."""

    ours: str
    theirs: str
    expose: str
    viewer: str
    record: str
    send_gate: bool

    @classmethod
    def of(cls, asked: Mapping[str, str], policy: LacePolicy | None = None) -> ExposureForm:
        """The form with its defaults: the policy of the lace on both sides, if it carries one."""
        selected, shown = "all", "selected"
        if policy is not None:
            selected, shown = policy.module.text, "\n".join(one.text for one in policy.exposures) or "none"
            selected = policy.in_force.text(PolicyKind.SELECT) or selected
            shown = policy.in_force.text(PolicyKind.EXPOSE) or shown
        text = {
            key: asked.get(key, "").replace("\r\n", "\n").strip()
            for key in ("ours", "theirs", "expose", "viewer", "record")
        }
        return cls(
            text["ours"] or selected,
            text["theirs"] or selected,
            text["expose"] or shown,
            text["viewer"],
            text["record"],
            asked.get("send_gate", "on") == "on",
        )


@dataclass(frozen=True, slots=True)
class ExposureShown:
    """The result of a choice, or `errors` by field."""

    errors: Sequence[Data]
    plan: ExchangePlan | None = None
    policy: LoweredPolicy | None = None
    notices: Sequence[Notice] = ()
    visible: Part = (0, ())
    sent: Part = (0, ())
    limit: str = ""
    walked: Walk | None = None


def exposure_page(opened: OpenedLace, asked: Mapping[str, str]) -> Page:
    """The page with the form and its result."""
    choice = ExposureForm.of(asked, opened.lace.policy())
    start = natural(asked.get("start", "")) or 0
    shown = work_out(opened, choice, start, _ROWS)
    outcome = tag("div", _outcome(opened, choice, shown, start), id="outcome", data_errors=json.dumps(shown.errors))
    total = opened.lace.stat().records
    lead = "Ask about a record and somebody; the rules of this lace answer, gate by gate."
    is_open = bool(shown.errors) or any(asked.get(name) for name in _RULES)
    body = join(
        tag("h1", "May somebody read something?"),
        tag("p", lead, class_="lead"),
        _form(opened, choice, outcome, is_open=is_open),
    )
    data: Data = {
        "errors": shown.errors,
        "limit": shown.limit or None,
        "records": total,
        "viewer": shown.policy.viewer if shown.policy else None,
        "view": str(shown.policy.view) if shown.policy else None,
        "visible": {"count": shown.visible[0], "start": start, "records": list(shown.visible[1])},
        "sent": {"count": shown.sent[0], "start": start, "records": list(shown.sent[1])},
        "why": walk_data(shown.walked) if shown.walked else None,
        "notices": [{"code": one.code, "text": one.text, "remedy": one.remedy} for one in shown.notices],
        "plan": shown.plan.id if shown.plan else None,
        "transcript": list(shown.plan.contents.lines) if shown.plan else [],
        "rules": [_rule_data(rule) for rule in shown.policy.provenance.rules] if shown.policy else [],
    }
    return Page(title="Exposure", data=data, body=body, crumbs=crumbs(opened), here=HERE, fragment=outcome)


def work_out(opened: OpenedLace, choice: ExposureForm, start: int, limit: int) -> ExposureShown:
    """The result of a choice over the current lace."""
    errors: list[Data] = []
    ours = _read(errors, "ours", choice.ours, selector)
    theirs = _read(errors, "theirs", choice.theirs, selector)
    exposed = _read(errors, "expose", choice.expose, lambda text: exposures(text, ours)) if ours else None
    verifier = _read(errors, "viewer", choice.viewer, lambda text: _verifier(opened.names(), text))
    if errors or ours is None or theirs is None or exposed is None:
        return ExposureShown(errors)
    try:
        return _work_out(opened, choice, verifier, (ours, theirs), exposed, start, limit)
    except LaceError as error:
        return ExposureShown([], limit=str(error))


def _verifier(names: Names, text: str) -> Verifier | None:
    """The verifier in the field; None if it is empty or the label of a peer that proves no identity."""
    return None if not text or is_opaque(text) else names.verifier(text)


def _work_out(
    opened: OpenedLace,
    choice: ExposureForm,
    verifier: Verifier | None,
    modules: tuple[Module, Module],
    exposed: tuple[Exposure, ...],
    start: int,
    limit: int,
) -> ExposureShown:
    plan = agree(*modules)
    options = LoweringOptions(send_gate=choice.send_gate)
    viewer = Viewer(verifier or choice.viewer or plan.operands[1].origin)
    policy = lower(plan, local_index=0, viewer=viewer, exposures=exposed, options=options, limits=TYPING_LIMITS)
    visible, sent = _parts(opened, policy, viewer, start, limit)
    walked = None
    if choice.record:
        walked = walk_to(opened, choice.record, modules, exposed, verifier, send_gate=choice.send_gate)
    notices = exposure_notices(policy, options)
    return ExposureShown([], plan, policy, notices, visible, sent, walked=walked)


def _parts(opened: OpenedLace, policy: LoweredPolicy, viewer: Viewer, start: int, limit: int) -> tuple[Part, Part]:
    """What a viewer sees and what it would be sent; if the rules say "every record", nothing is evaluated."""
    program = _flat(policy)
    every = _every(opened, start, limit)
    if policy.view is ViewKind.ALL and [rule.body for rule in program.program.rules] == [_EVERY_RECORD]:
        return every, every
    with opened.work:
        base = base_of(opened.lace)
        moment = runtime_facts(viewer, SystemClock().tai())
        result = evaluate(program, base, extra=moment, limits=TYPING_LIMITS)

    def part(predicate: Predicate, column: int) -> Part:
        if predicate not in result.derived:
            return 0, []
        found = result.columns(predicate)[column]
        return len(found), base.dictionary.texts(found[start : start + limit])

    return every if policy.view is ViewKind.ALL else part(CAN_QUERY_RECORD, 1), part(policy.sendable, 0)


def _flat(policy: LoweredPolicy) -> CheckedProgram:
    """The part of the policy that this page asks for, with single-rule steps inlined: an exchange keeps these steps to
    follow changes, a page needs only the result."""
    wanted = {policy.sendable} if policy.view is ViewKind.ALL else {policy.sendable, CAN_QUERY_RECORD}
    flat = unfold(policy.program.program, wanted, lambda _: True, TYPING_LIMITS.max_rule_literals)
    needed = reachable(flat.rules, wanted)
    rules = tuple(rule for rule in flat.rules if rule.head.predicate in needed)
    most = max(TYPING_LIMITS.max_rules, len(rules))  # as lowering itself: the limit is for each module
    return check_program(Program(rules), LOWERED_PROFILE, replace(TYPING_LIMITS, max_rules=most))


def _every(opened: OpenedLace, start: int, limit: int) -> Part:
    """Whether every record passes, because no gate was lowered that would hold one back."""
    snapshot = opened.snapshot()
    hashes = snapshot.columns(HAVE)[0]
    return len(hashes), snapshot.texts(hashes[start : start + limit])


def _read(errors: list[Data], field: str, text: str, read: Callable[[str], T]) -> T | None:
    """Parse a field's text; what is wrong with it goes to `errors`, each with its place."""
    try:
        return read(text)
    except InvalidInput as error:
        findings = getattr(error, "findings", ()) or (error,)
        errors += [{"field": field, **error_data(finding)} for finding in findings]
    except LaceError as error:
        advice = " ".join(getattr(error, "__notes__", ()))
        errors.append({"field": field, "message": str(error), "line": 0, "column": 0, "advice": advice})
    return None


def _form(opened: OpenedLace, choice: ExposureForm, outcome: Markup, *, is_open: bool) -> Markup:
    people = tag("datalist", [tag("option", value=word) for word in opened.names().words()], id="people")
    look = {"spellcheck": "false", "autocomplete": "off", "data_live": True}
    who = tag("input", name="viewer", id="viewer", value=choice.viewer, placeholder="a stranger", list="people",
              aria_label="Viewer", title="A name, a verifier, or nothing: a stranger", **look)  # fmt: skip
    what = tag("input", name="record", id="record", value=choice.record, placeholder="anything", aria_label="Record",
               title="A hash or a coordinate such as //u//notes//books/reading", **look)  # fmt: skip
    ask = tag("div", tag("span", "May"), who, people, tag("span", "read"), what, tag("span", "?"),
              tag("button", "Ask", class_="primary"), class_="question")  # fmt: skip
    usual = ExposureForm.of({}, opened.lace.policy())
    ours = _editor("ours", "Our rules", choice.ours, usual.ours, f"What this side selects: {_WORDS}.")
    theirs = _editor("theirs", "Their rules", choice.theirs, usual.theirs, f"What the peer selects: {_WORDS}.")
    hint = "all, selected (what our rules select), none, or rules for AllowQueryRecord(Viewer,P)."
    expose = _editor("expose", "Exposed to the viewer", choice.expose, usual.expose, hint)
    gate = tag(
        "label",
        tag("input", type="checkbox", name="send_gate", value="on", checked=choice.send_gate, data_live=True),
        " Send only what the viewer may query",
    )
    unchecked = tag("input", type="hidden", name="send_gate", value="off")
    columns = tag("div", ours, theirs, expose, tag("div", unchecked, tag("p", gate)), class_="columns")
    by_policy = opened.lace.policy() is not None
    note = "both sides go by the policy of this lace" if by_policy else "this lace has no policy: say which to assume"
    rules = fold("Under these rules", columns, note=note, name="under", is_open=is_open)
    return tag("form", ask, rules, outcome, method="post", action=f"{opened.base}/exposure")


def _editor(name: str, label: str, text: str, usual: str, hint: str) -> Markup:
    area = tag(
        "textarea",
        text,
        name=name,
        id=name,
        rows="5",
        spellcheck="false",
        autocomplete="off",
        data_live=True,
        data_usual=text == usual,  # what an address need not say
        aria_describedby=f"{name}-note",
    )
    under = tag("pre", text, class_="editor-under", aria_hidden="true")
    note = tag("p", "", id=f"{name}-note", class_="caret-note", aria_live="polite")
    return tag(
        "div",
        tag("label", label, for_=name),
        tag("div", under, area, class_="editor"),
        tag("p", hint, class_="note"),
        note,
    )


def _outcome(opened: OpenedLace, choice: ExposureForm, shown: ExposureShown, start: int) -> Markup:
    if shown.limit:
        return notice("bad", shown.limit)
    if shown.errors or shown.plan is None or shown.policy is None:
        labels = {"ours": "Our rules", "theirs": "Their rules", "expose": "Exposed to the viewer", "viewer": "Viewer"}
        items = [
            tag(
                "li",
                tag("strong", labels[one["field"]]),
                f" {one['line']}:{one['column']} " if one["line"] else " ",
                one["message"],
                one["advice"] and tag("p", one["advice"], class_="note"),
            )
            for one in shown.errors
        ]
        return tag("div", tag("ul", items, class_="errors"), class_="notice bad", role="status")
    total = opened.lace.stat().records
    who = _called(opened, choice)
    warnings = [
        notice("warning", join(tag("strong", prose(one.text)), " ", prose(one.remedy))) for one in shown.notices
    ]
    figures = tag(
        "div",
        figure(f"{shown.visible[0]:,}", f"of {count(total, 'record')} {who} may see"),
        figure(f"{shown.sent[0]:,}", "would be sent"),
        class_="figures",
    )
    seen = _records(opened, f"What {who} may see", shown.visible, start,
                    f"{shown.visible[0]:,} of {count(total, 'record')}")  # fmt: skip
    sent = _records(opened, "What would be sent", shown.sent, start,
                    f"{count(shown.sent[0], 'record')}, if the peer has none of them")  # fmt: skip
    answer = show_walk(opened, shown.walked, who, choice.record) if shown.walked else None
    return join(answer, warnings, figures, seen, sent, _plan(shown.plan), _rules(opened, shown.policy))


def _called(opened: OpenedLace, choice: ExposureForm) -> str:
    """The viewer in a sentence."""
    if not choice.viewer or is_opaque(choice.viewer):
        return "a stranger"
    return choice.viewer if not choice.viewer.startswith("V.") else opened.names().told(choice.viewer)


def _records(opened: OpenedLace, title: str, found: Part, start: int, note: str) -> Markup:
    total, shown = found
    pages = row_pager(start, len(shown), total, _ROWS)
    listing = record_table(opened, title, summaries(opened, shown)) if total else empty("Nothing.")
    return fold(title, listing, pages, note=note, name=_anchor(title), is_open=start > 0)


def _anchor(title: str) -> str:
    return "part-" + "-".join(title.lower().split()[-2:])


def _plan(plan: ExchangePlan) -> Markup:
    needs = plan.requirements
    read = "all" if needs.all_fields else ", ".join(sorted(needs.names)) or "none"
    rows: list[tuple[str, object]] = [("Plan", copyable(plan.id))]
    for operand, label in zip(plan.operands, ("Our rules", "Their rules"), strict=True):
        rows.append(
            (label, join(tag("code", operand.module.id), tag("br"), tag("span", operand.origin, class_="faint")))
        )
    rows += [("Lowering", plan.lowering), ("Advertised fields", read)]
    text = "\n".join(plan.contents.lines)
    transcript = tag("pre", tag("code", text), class_="content", tabindex="0", role="region", aria_label="Transcript")
    note = "both sides compute it from the two rule files alone"
    return fold("Plan", fields(rows), tag("h3", "Transcript"), transcript, note=note, name="part-plan")


def _rules(opened: OpenedLace, policy: LoweredPolicy) -> Markup:
    spell = speller(opened.names(), opened.base)
    rows = [(spell(rule.line), rule.stage, rule.detail) for rule in policy.provenance.rules]
    listing = table("Rules that run here", ("Rule", "Made by", "For"), rows)
    note = f"{count(len(rows), 'rule')}, each with what made it"
    return fold("Rules that would run here", listing, note=note, name="part-rules")


def _rule_data(rule: LoweredRule) -> Data:
    return {"rule": rule.line, "id": rule.id, "stage": rule.stage, "detail": rule.detail, "origin": rule.origin or None}


_MARKS = {True: ("open", "good"), False: ("shut", "bad"), None: ("unknown from here", "warn")}


def walk_to(
    opened: OpenedLace,
    target: str,
    modules: tuple[Module, Module],
    exposures: tuple[Exposure, ...],
    verifier: Verifier | None,
    *,
    send_gate: bool,
) -> Walk:
    """Walk a record of a lace to a viewer, who may prove no identity; the viewer's rules are known, its lace is not."""
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


def show_walk(opened: OpenedLace, walked: Walk, who: str, asked_for: str) -> Markup:
    """Yes or no in one line, at which gate and why, and every gate folded below."""
    what = tag("strong", asked_for if asked_for.startswith("//") else short(asked_for), title=walked.record)
    stopped = walked.stopped
    beginning = who.replace("a stranger", "A stranger")
    if stopped is not None:
        said = join(
            tag("p", tag("b", "No. ", class_="answer"), beginning, " would not get ", what, "."),
            tag("p", f"It stops {stopped.side}, at the gate “{stopped.name}”: ", prose(stopped.said), "."),
            stopped.remedy and tag("p", "To change that: ", prose(stopped.remedy)),
        )
        verdict = notice("bad", said)
    elif walked.unknown:
        unknown = ", ".join(f"“{gate.name}”" for gate in walked.unknown)
        said = join(
            tag("p", tag("b", "Yes, ", class_="answer"), "as far as this side decides: ", who, " may read ", what, "."),
            tag("p", f"Only the other side can tell: {unknown}."),
        )
        verdict = notice("good", said)
    else:
        verdict = notice("good", tag("p", tag("b", "Yes. ", class_="answer"), beginning, " would get ", what,
                                     ": every gate is open."))  # fmt: skip
    items = [tag("li", _gate(opened, gate)) for gate in walked.gates]
    gates = fold(
        "Each gate on its way",
        tag("ol", items, class_="gates"),
        note=f"{count(len(items), 'gate')}{', shut at the last' if stopped is not None else ''}",
        name="part-gates",
    )
    return tag("div", verdict, gates, id="answer")


def _gate(opened: OpenedLace, gate: Gate) -> Markup:
    said, kind = _MARKS[gate.passed]
    title = gate.said if gate.passed is False else gate.name
    head = join(tag("strong", prose(title)), " ", tag("span", f"{gate.side}, {said}", class_=f"badge {kind}"))
    words = tag("p", prose(gate.said), class_="note") if title != gate.said and gate.said not in ("yes", "") else None
    if not gate.because:
        return join(head, words)
    because = fact(gate.because, opened.names(), opened.base)
    return join(tag("details", tag("summary", head), tag("pre", because), open=gate.passed is False), words)
