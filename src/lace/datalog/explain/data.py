"""Proofs and absences for programs: JSON values and Graphviz text.

Rule: a proof is a flat list of nodes that point at each other by number, so depth costs no stack.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, assert_never

from lace.datalog.explain.absence import Absence, Attempt, BlockedBy, Miss, MissingFact, TestFailed, WrongCount
from lace.datalog.explain.proof import Absent, Counted, Held, Proof, Step, Supported
from lace.datalog.explain.text import step_text
from lace.datalog.language.canonical import format_atom, format_fact, format_literal, format_rule, rule_id
from lace.datalog.language.syntax import Fact, Rule
from lace.notation.identifiers import RuleId

Annotations = Mapping[RuleId, Mapping[str, Any]]
Json = dict[str, Any]


def proof_nodes(root: Proof) -> dict[Fact, Proof]:
    """Every proof that the root stands on, itself first, each once."""
    nodes: dict[Fact, Proof] = {root.fact: root}
    queue = [root]
    while queue:
        for step in queue.pop().body:
            if isinstance(step, Supported) and step.proof.fact not in nodes:
                nodes[step.proof.fact] = step.proof
                queue.append(step.proof)
    return nodes


def proof_json(root: Proof, annotations: Annotations = {}) -> Json:  # noqa: B006  # read only
    """A proof as `{"fact", "holds": true, "nodes": [...]}`; node 0 is the fact asked for."""
    nodes = proof_nodes(root)
    numbers = {fact: number for number, fact in enumerate(nodes)}
    shown = [
        {
            "node": numbers[fact],
            "fact": format_fact(fact),
            "rank": proof.rank,
            **(_rule_json(proof.rule, annotations) if proof.rule is not None else {"base": True}),
            "body": [_step_json(step, numbers) for step in proof.body],
        }
        for fact, proof in nodes.items()
    ]
    return {"fact": format_fact(root.fact), "holds": True, "nodes": shown}


def _rule_json(rule: Rule, annotations: Annotations) -> Json:
    identifier = rule_id(rule)
    annotation = annotations.get(identifier)
    return {"rule": format_rule(rule), "id": identifier, **({"annotation": dict(annotation)} if annotation else {})}


def _step_json(step: Step, numbers: Mapping[Fact, int]) -> Json:
    match step:
        case Supported(proof):
            return {"kind": "fact", "node": numbers[proof.fact]}
        case Absent(atom):
            return {"kind": "absent", "atom": format_atom(atom)}
        case Counted():
            return _counted_json(step)
        case Held(literal):
            return {"kind": "test", "test": format_literal(literal)}
        case _:
            assert_never(step)


def _counted_json(counted: Counted) -> Json:
    return {
        "kind": "count",
        "atom": format_atom(counted.atom),
        "operator": counted.operator,
        "bound": counted.bound,
        "count": counted.count,
        "examples": [format_fact(fact) for fact in counted.examples],
    }


def absence_json(absence: Absence, annotations: Annotations = {}) -> Json:  # noqa: B006  # read only
    """An absence as `{"fact", "holds": false, "attempts": [...]}`."""
    return {
        "fact": format_atom(absence.goal),
        "holds": False,
        "cut": absence.cut,
        "nearest": format_fact(absence.nearest) if absence.nearest else None,
        "other_rules": absence.other_rules,
        "attempts": [_attempt_json(attempt, annotations) for attempt in absence.attempts],
    }


def _attempt_json(attempt: Attempt, annotations: Annotations) -> Json:
    body = attempt.rule.body
    return {
        **_rule_json(attempt.rule, annotations),
        "failed_at": format_literal(body[attempt.place]),
        "reached": attempt.reached,
        "complete": attempt.complete,
        "passed": [{"atom": format_literal(body[place]), "left": left} for place, left in attempt.passed],
        "binding": dict(attempt.binding),
        "miss": _miss_json(attempt.miss, annotations),
    }


def _miss_json(miss: Miss, annotations: Annotations) -> Json:
    match miss:
        case MissingFact(atom, nearest, differs, because):
            return {
                "kind": "missing",
                "atom": format_atom(atom),
                "nearest": format_fact(nearest) if nearest else None,
                "differs": list(differs),
                "because": absence_json(because, annotations) if because else None,
            }
        case BlockedBy(atom, proof):
            return {"kind": "blocked", "atom": format_atom(atom), "proof": proof_json(proof, annotations)}
        case WrongCount(counted):
            return _counted_json(counted)
        case TestFailed(literal):
            return {"kind": "test", "test": format_literal(literal)}
        case _:
            assert_never(miss)


def proof_dot(root: Proof, annotations: Annotations = {}) -> str:  # noqa: B006  # read only
    """A proof as a Graphviz digraph: facts are boxes, what they stand on below them."""
    lines = ["digraph proof {", "  node [shape=box, fontname=monospace];"]
    lines += [f"  {line}" for line in _dot_lines(proof_nodes(root), annotations)]
    return "\n".join([*lines, "}", ""])


def _dot_lines(nodes: Mapping[Fact, Proof], annotations: Annotations) -> Iterator[str]:
    numbers = {fact: number for number, fact in enumerate(nodes)}
    for fact, proof in nodes.items():
        number = numbers[fact]
        if proof.rule is None:
            yield f"n{number} [label={_dot_text(format_fact(fact))}, style=filled, fillcolor=lightgrey];"
            continue
        identifier = rule_id(proof.rule)
        label = annotations.get(identifier, {}).get("label", identifier)
        shown = _dot_text(format_fact(fact) + "\n" + str(label))
        yield f"n{number} [label={shown}];"
        for place, step in enumerate(proof.body):
            if isinstance(step, Supported):
                yield f"n{number} -> n{numbers[step.proof.fact]};"
            else:
                yield f"n{number}_{place} [label={_dot_text(step_text(step))}, style=dashed];"
                yield f"n{number} -> n{number}_{place};"


def _dot_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
