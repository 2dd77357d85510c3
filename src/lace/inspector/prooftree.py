"""Proofs and absences as trees that unfold.

Rule: built from the JSON that programs get, so the page says neither more nor less. Each derived fact is shown in full
once, and a deep proof is cut into several trees.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from lace.datalog.explain.explanation import Explanation
from lace.inspector.html import Markup, join, tag

_OPEN_DEPTH = 2
_DEEPEST = 30
Json = Mapping[str, Any]
Spell = Callable[[str], Markup]


def show_explanation(explanation: Explanation, spell: Spell) -> Markup:
    """The answer to why, or to why not; `spell` shows a fact or a rule as code, with names in place of hashes."""
    found = explanation.to_json()
    return show_proof(spell, found) if found["holds"] else _absence(spell, found, 0)


def show_proof(spell: Spell, found: Json) -> Markup:
    """A proof as one tree, or as several if it is deep."""
    nodes: list[Json] = found["nodes"]
    waiting, shown = deque([0]), set[int]()
    trees = []
    while waiting:
        start = waiting.popleft()
        if start not in shown:
            trees.append(tag("ul", _node(spell, nodes, start, 0, shown, waiting), class_="proof"))
    return join(trees)


def _node(spell: Spell, nodes: list[Json], number: int, depth: int, shown: set[int], waiting: deque[int]) -> Markup:
    node = nodes[number]
    fact = spell(node["fact"])
    if node.get("base"):
        return tag("li", fact, " ", tag("span", "stored", class_="badge"))
    if number in shown:
        return tag("li", fact, " ", link_to(number, "shown above"))
    if depth >= _DEEPEST:
        waiting.append(number)
        return tag("li", fact, " ", link_to(number, "shown below"))
    shown.add(number)
    steps = [_step(spell, nodes, step, depth + 1, shown, waiting) for step in node["body"]]
    inner = join(_rule(spell, node), tag("ul", steps))
    return tag("li", tag("details", tag("summary", fact), inner, open=depth < _OPEN_DEPTH, id=f"proof-{number}"))


def link_to(number: int, label: str) -> Markup:
    """A link to the place where a fact is shown in full."""
    return tag("a", label, href=f"#proof-{number}", class_="faint")


def _step(spell: Spell, nodes: list[Json], step: Json, depth: int, shown: set[int], waiting: deque[int]) -> Markup:
    match step["kind"]:
        case "fact":
            return _node(spell, nodes, step["node"], depth, shown, waiting)
        case "absent":
            return tag("li", spell(f"not {step['atom']}"), " ", tag("span", "no such fact", class_="badge"))
        case "count":
            return tag("li", _counted(spell, step))
        case _:
            return tag("li", spell(step["test"]), " ", tag("span", "true", class_="badge"))


def _counted(spell: Spell, step: Json) -> Markup:
    test = f"Cardinality({step['atom']},'{step['operator']}',{step['bound']})"
    examples = [tag("li", spell(fact)) for fact in step["examples"]]
    return join(
        spell(test),
        " ",
        tag("span", f"counted {step['count']:,}", class_="badge"),
        examples and tag("ul", examples),
    )


def _rule(spell: Spell, node: Json) -> Markup:
    note = node.get("annotation") or {}
    said = ": ".join(str(note[key]) for key in ("label", "why") if key in note)
    return tag("p", said and tag("strong", said, " "), "by ", spell(node["rule"]), class_="rule", title=node["id"])


def _absence(spell: Spell, found: Json, depth: int) -> Markup:
    head = spell(found["fact"])
    parts: list[object] = []
    if found["cut"]:
        parts.append(tag("p", "Not followed further."))
    elif found["nearest"]:
        parts.append(tag("p", "The nearest stored fact is ", spell(found["nearest"]), "."))
    parts.append(tag("ul", [tag("li", _attempt(spell, attempt, depth)) for attempt in found["attempts"]]))
    if found["other_rules"]:
        parts.append(tag("p", f"{found['other_rules']} more rules have other constants in their heads.", class_="note"))
    if not (found["attempts"] or found["other_rules"] or found["cut"] or found["nearest"]):
        parts.append(tag("p", "There is no such fact, and no rule for it."))
    summary = tag("summary", head, " ", tag("span", "does not hold", class_="badge warn"))
    return tag("details", summary, parts, open=depth < _OPEN_DEPTH, class_="absence")


def _attempt(spell: Spell, attempt: Json, depth: int) -> Markup:
    reached = f"{attempt['reached']:,}{'' if attempt['complete'] else ' or more'}"
    passed = [
        tag("li", spell(one["atom"]), " ", tag("span", f"{one['left']:,} left", class_="badge"))
        for one in attempt["passed"]
    ]
    failed = tag("li", spell(attempt["failed_at"]), " ", tag("span", f"none of {reached}", class_="badge warn"))
    bound = ", ".join(f"{name} = '{value}'" for name, value in attempt["binding"].items())
    return join(
        _rule(spell, attempt),
        tag("ol", passed, failed, class_="steps"),
        bound and tag("p", "Nearest, with ", spell(bound)),
        _miss(spell, attempt["miss"], depth),
    )


def _miss(spell: Spell, miss: Json, depth: int) -> Markup:
    match miss["kind"]:
        case "missing":
            said: list[object] = [tag("p", "There is no ", spell(miss["atom"]), ".")]
            if miss["nearest"]:
                places = ", ".join(str(place + 1) for place in miss["differs"])
                said.append(
                    tag(
                        "p",
                        "The nearest miss is ",
                        spell(miss["nearest"]),
                        f", which differs in term {places}.",
                        class_="nearest",
                    )
                )
            if miss["because"] and not miss["because"]["cut"]:
                said.append(_absence(spell, miss["because"], depth + 1))
            return join(said)
        case "blocked":
            return join(
                tag("p", spell(f"not {miss['atom']}"), " is false, because this holds:"),
                show_proof(spell, miss["proof"]),
            )
        case "count":
            return tag("p", _counted(spell, miss), " is false.")
        case _:
            return tag("p", spell(miss["test"]), " is false.")
