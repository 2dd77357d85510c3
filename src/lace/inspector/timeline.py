"""A line of time over a conversation: drag it, and see what each side had, asked for and refused at that moment.

Rule: a moment is an item of the conversation. What a side has is what was said or sent until then; which rule selected
a record is asked of the sender's own rules over a lace that is open here and holds the record.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from math import log2

from lace.datalog.language.parser import parse_atom
from lace.errors import LaceError
from lace.inspector.answers import EXPLAIN_LIMITS, TYPING_LIMITS
from lace.inspector.browse import summaries
from lace.inspector.html import Markup, join, tag
from lace.inspector.inspected import Inspected, OpenedLace
from lace.inspector.names import Names, speller
from lace.inspector.phases import Item, TalkPhase, placed
from lace.inspector.prooftree import show_explanation
from lace.inspector.widgets import count, fields, fold, link, short, signer
from lace.notation.decimal import natural
from lace.notation.identifiers import RecordHash
from lace.porcelain.explain import Explainer
from lace.values import dataclass

_FACT = re.compile(r"(\w+)\('([A-Z]\.[A-Za-z0-9_~-]{43}(?:\.H3)?)'(?:,'((?:[^'\\]|\\.)*)')?")
_HASH = re.compile(r"[A-Z]\.[A-Za-z0-9_~-]{43}(?:\.H3)?")
_SHOWN = 60  # records of both sets
_STRIP, _TALL = 1000, 44


@dataclass(slots=True)
class SideThen:
    """What is known of one side at a moment."""

    has: dict[str, None] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    plan: str = ""
    signer: str = ""
    rules: str = ""  # the identifier of its operand
    total: str = ""  # how many records it says that it has to offer


@dataclass(slots=True)
class TalkMoment:
    """Both sides at a moment, and the record that moved last."""

    us: SideThen
    peer: SideThen
    texts: dict[str, str]
    last: tuple[str, str] | None = None  # the way and the record
    phase: TalkPhase = TalkPhase.RULES
    loop: int = 1

    def side(self, way: str) -> SideThen:
        """The side that speaks in one direction."""
        return self.us if way == "out" else self.peer

    def other(self, way: str) -> SideThen:
        """The side that listens."""
        return self.peer if way == "out" else self.us


def moment_at(items: Sequence[Item], at: int) -> TalkMoment:
    """Both sides after the item of a number."""
    found = TalkMoment(SideThen(), SideThen(), {})
    for one in placed(items[: at + 1]):
        found.loop, found.phase = one.loop, one.phase
        _hear(found, one.item)
    return found


def _hear(found: TalkMoment, item: Item) -> None:
    way, speaks, listens = item["way"], found.side(item["way"]), found.other(item["way"])
    if item["kind"] == "record":
        speaks.has[item["text"]] = listens.has[item["text"]] = None
        found.last = way, item["text"]
    elif item["kind"] == "resource":
        found.texts[item["text"].partition(" ")[0]] = "\n".join(item["lines"])
    elif item["kind"] == "facts":
        for line in item["lines"]:
            _hear_fact(speaks, listens, line)


def _hear_fact(speaks: SideThen, listens: SideThen, line: str) -> None:
    name = line.partition("(")[0]
    if name == "DifferenceRoot":
        speaks.total = line.split("'")[1]
    if name == "ExchangeOperand":
        speaks.rules = next(iter(_HASH.findall(line)), "")
        return
    said = _FACT.match(line)
    if said is None:
        return
    what, why = said[2], said[3] or ""
    match said[1]:
        case "Advertised":
            speaks.has[what] = None
        case "MayRequest":
            speaks.asked.add(what)
            listens.has[what] = None
        case "Refused" | "Declined" | "NotAvailable":
            speaks.refused[what] = why or "not available"
            if said[1] == "Refused":
                speaks.has.pop(what, None)
        case "HelloExchangePlan":
            speaks.plan = what
        case "HelloSigner":
            speaks.signer = what


def timeline(
    inspected: Inspected,
    base: str,
    items: Sequence[Item],
    asked: Mapping[str, str],
    kept: Mapping[str, str] | None = None,
) -> Markup:
    """The line of time with what both sides had at the chosen item."""
    last = max(0, len(items) - 1)
    chosen = natural(asked.get("at", ""))
    at = min(last, last if chosen is None else chosen)
    slider = tag("input", type="range", name="at", id="at", min=0, max=last, value=at, step=1, data_live=True,
                 aria_label="Moment", aria_valuetext=_moment_text(items, at), class_="slider")  # fmt: skip
    outcome = tag("div", _strip(items, at), _shown(inspected, items, at), id="outcome")
    button = tag("noscript", tag("button", "Show this moment"))
    hidden = [tag("input", type="hidden", name=name, value=value) for name, value in (kept or {}).items()]
    form = tag("form", outcome, slider, hidden, button, method="post", action=base, class_="timeline")
    return tag("section", tag("h2", "Line of time", id="time"), form)


def _moment_text(items: Sequence[Item], at: int) -> str:
    return f"item {at + 1} of {len(items)}, {items[at]['seconds']:.3f} s" if items else "nothing was said"


def _strip(items: Sequence[Item], at: int) -> Markup:
    """Every item as a bar, ours above the line and the peer's below, as high as it is long."""
    if not items:
        return Markup("")
    wide = _STRIP / len(items)
    bars = []
    for place, item in enumerate(items):
        tall = 2 + min(_TALL / 2 - 4, 1.2 * log2(1 + item["size"]))
        kind = "us" if item["way"] == "out" else "peer"
        y = _TALL / 2 - tall if kind == "us" else _TALL / 2
        later = " later" if place > at else ""
        bars.append(tag("rect", x=f"{place * wide:.2f}", y=f"{y:.1f}", width=f"{max(1.0, wide * 0.8):.2f}",
                        height=f"{tall:.1f}", class_=f"{kind}{later}"))  # fmt: skip
    cursor = (at + 0.5) * wide
    line = tag("line", x1=f"{cursor:.1f}", x2=f"{cursor:.1f}", y1=0, y2=_TALL, class_="cursor")
    told = f"{count(len(items), 'item')}: ours above the line, the peer's below"
    return tag("svg", bars, line, viewBox=f"0 0 {_STRIP} {_TALL}", preserveAspectRatio="none", class_="strip",
               role="img", aria_label=told)  # fmt: skip


def _shown(inspected: Inspected, items: Sequence[Item], at: int) -> Markup:
    found = moment_at(items, at)
    names = inspected.names()
    loop = f", loop {found.loop}" if found.loop > 1 else ""
    head = tag("p", tag("strong", f"{found.phase.title}{loop}"), f" · {_moment_text(items, at)}. {found.phase.told}")
    lace = _holding(inspected, found)
    sets = tag("div", _side("Us", "us", found.us, names), _side("Peer", "peer", found.peer, names), class_="both")
    return join(head, sets, _records(found, lace), _fired(found, lace))


def _holding(inspected: Inspected, found: TalkMoment) -> OpenedLace | None:
    """A lace that is open here and holds the record that moved last, or one of those that were told of."""
    wanted = [found.last[1]] if found.last else [*found.us.has, *found.peer.has][:1]
    for slug in list(inspected.laces):
        opened = inspected.current(slug)
        if any(opened.lace.store.have(RecordHash(one)) for one in wanted):
            return opened
    return None


def _side(title: str, kind: str, side: SideThen, names: Names) -> Markup:
    rows: list[tuple[str, object]] = [
        ("Who", signer(side.signer, names) if side.signer else "not said"),
        ("Known to have", f"{len(side.has):,}{f' of {side.total}' if side.total else ''}"),
        ("Asked for", f"{len(side.asked):,}"),
    ]
    if side.refused:
        rows.append(("Refused", f"{len(side.refused):,}"))
    plan = side.plan and tag("code", short(side.plan), title=side.plan)
    rows.append(("Plan", plan or "not agreed yet"))
    rows.append(("Rules", tag("code", short(side.rules), title=side.rules) if side.rules else "not said yet"))
    return tag("div", tag("h3", title, class_=kind), fields(rows), class_="card")


def _records(found: TalkMoment, lace: OpenedLace | None) -> Markup | None:
    """Both sets, record by record: a full dot for what a side has, a ring for what it asked for."""
    every = list(dict.fromkeys([*found.us.has, *found.peer.has, *found.us.asked, *found.peer.asked]))
    if not every:
        return None
    shown = every[-_SHOWN:]
    known = {}
    if lace is not None:
        here = [one for one in shown if lace.lace.store.have(RecordHash(one))]
        known = {row["hash"]: row["coordinate"] for row in summaries(lace, here)}
    rows = []
    for one in shown:
        label = known.get(one) or short(one)
        is_here = lace is not None and one in known
        named = (
            link(label, f"{lace.base}/record/{one}", title=one)
            if lace is not None and is_here
            else tag("code", label, title=one)
        )
        moved = found.last is not None and found.last[1] == one
        dots = _dot(found.us, one, "us"), _dot(found.peer, one, "peer")
        what = tag("span", named, class_="what")
        rows.append(tag("li", dots[0], what, dots[1], class_="moved" if moved else None))
    cut = len(every) > len(shown) and tag("p", f"The last {len(shown)} of {len(every):,}.", class_="note")
    key = tag("p", "● has it · ○ asked for it · ✕ refused it", class_="note")
    return fold("Both sets", key, tag("ol", rows, class_="sets"), cut or None, note=count(len(every), "record"),
                name="part-sets", is_open=len(every) <= _SHOWN)  # fmt: skip


def _dot(side: SideThen, record: str, kind: str) -> Markup:
    who = "we" if kind == "us" else "the peer"
    if record in side.refused:
        return tag("span", "✕", class_="dot bad", title=f"{who} refused it: {side.refused[record]}")
    if record in side.has:
        return tag("span", "●", class_=f"dot {kind}", title=f"{who} has it")
    if record in side.asked:
        return tag("span", "○", class_=f"dot {kind}", title=f"{who} asked for it")
    return tag("span", "·", class_="dot faint", title=f"nothing is known of it on {who}'s side")


def _fired(found: TalkMoment, lace: OpenedLace | None) -> Markup | None:
    """The rule of the sender by which the last record was selected."""
    if found.last is None:
        return None
    way, record = found.last
    who = "our" if way == "out" else "the peer's"
    text = found.texts.get(found.side(way).rules) or next(iter(found.texts.values()), "")
    title = f"Which of {who} rules selected the last record"
    if not text:
        return fold(
            title, tag("p", "The rules were known to both sides, so their text was not sent."), name="part-rule"
        )
    if lace is None or not lace.lace.store.have(RecordHash(record)):
        said = "Open the lace that holds it beside this: lace inspect LACE CAPTURE."
        return fold(title, tag("p", said), _text(text), name="part-rule")
    try:
        explainer = Explainer(lace.lace, text, name="", limits=TYPING_LIMITS, explain_limits=EXPLAIN_LIMITS)
        with lace.work:
            answer = explainer.explain(parse_atom(f"SelectHave('{record}')", limits=TYPING_LIMITS))
    except LaceError as error:
        return fold(title, tag("p", str(error)), _text(text), name="part-rule")
    told = answer.to_json()
    rule = told["nodes"][0].get("rule", "") if told["holds"] else "no rule: it was selected in another way"
    spell = speller(lace.names(), lace.base)
    proof = show_explanation(answer, spell)
    return fold(title, tag("p", spell(rule)), fold("Proof", proof), fold("All of the rules", _text(text)),
                name="part-rule", is_open=True)  # fmt: skip


def _text(text: str) -> Markup:
    return tag("pre", tag("code", text), class_="content", tabindex="0", role="region", aria_label="Rules")
