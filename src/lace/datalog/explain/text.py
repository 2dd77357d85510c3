"""Proofs and absences as text for people.

Rule: each derived fact is shown in full once; a proof may be deeper than a page is wide, so deep parts start again at
the margin.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, assert_never

from lace.datalog.explain.absence import Absence, Attempt, BlockedBy, Miss, MissingFact, TestFailed, WrongCount
from lace.datalog.explain.proof import Absent, Counted, Held, Proof, Step, Supported
from lace.datalog.language.canonical import format_atom, format_fact, format_literal, format_rule, rule_id
from lace.datalog.language.syntax import Fact, Rule
from lace.notation.identifiers import RuleId
from lace.notation.text import quote

Annotations = Mapping[RuleId, Mapping[str, Any]]
_DEEPEST = 24


def format_proof(proof: Proof, annotations: Annotations = {}) -> str:  # noqa: B006  # read only
    """A proof as a tree, one final LF."""
    return "".join(f"{line}\n" for line in _proof_lines(proof, annotations))


def format_absence(absence: Absence, annotations: Annotations = {}) -> str:  # noqa: B006  # read only
    """Why a fact does not hold, one final LF."""
    return "".join(f"{line}\n" for line in _absence_lines(absence, annotations))


def rule_notes(rule: Rule, annotations: Annotations) -> Iterator[str]:
    """The rule, its id, and what its annotation says."""
    identifier = rule_id(rule)
    note = annotations.get(identifier, {})
    yield f"by {format_rule(rule)}"
    said = [str(note[key]) for key in ("label", "why") if key in note]
    yield "   " + "  ".join([identifier, *([": ".join(said)] if said else [])])


def _proof_lines(root: Proof, annotations: Annotations) -> Iterator[str]:
    waiting: deque[Proof] = deque([root])
    shown: set[Fact] = set()
    while waiting:
        start = waiting.popleft()
        if start is not root:
            yield ""
        # (proof or step, prefix of its own line, prefix of the lines below it, depth)
        stack: list[tuple[Proof | Step, str, str, int]] = [(start, "", "", 0)]
        while stack:
            item, first, rest, depth = stack.pop()
            proof = item.proof if isinstance(item, Supported) else item
            if not isinstance(proof, Proof):
                yield first + step_text(proof)
            elif proof.rule is None:
                yield f"{first}{format_fact(proof.fact)}  (base fact)"
            elif proof.fact in shown:
                yield f"{first}{format_fact(proof.fact)}  (shown above)"
            elif depth >= _DEEPEST:
                waiting.append(proof)
                yield f"{first}{format_fact(proof.fact)}  (shown below)"
            else:
                shown.add(proof.fact)
                yield first + format_fact(proof.fact)
                yield from (
                    rest + ("│ " if proof.body else "  ") + note for note in rule_notes(proof.rule, annotations)
                )
                last = len(proof.body) - 1
                for place in range(last, -1, -1):
                    own, below = ("└─ ", "   ") if place == last else ("├─ ", "│  ")
                    stack.append((proof.body[place], rest + own, rest + below, depth + 1))


def step_text(step: Absent | Counted | Held) -> str:
    """One body atom that no proof stands under."""
    match step:
        case Absent(atom):
            return f"not {format_atom(atom)}  (no such fact)"
        case Counted():
            return counted_text(step)
        case Held(literal):
            return format_literal(literal)
        case _:
            assert_never(step)


def counted_text(counted: Counted) -> str:
    """What a cardinality test counted."""
    examples = ", ".join(map(format_fact, counted.examples))
    more = ", …" if counted.count > len(counted.examples) else ""
    shown = f": {examples}{more}" if examples else ""
    test = f"Cardinality({format_atom(counted.atom)},'{counted.operator}',{quote(counted.bound)})"
    return f"{test}  ({counted.count} {'fact' if counted.count == 1 else 'facts'}{shown})"


def _absence_lines(absence: Absence, annotations: Annotations) -> Iterator[str]:
    yield f"{format_atom(absence.goal)} does not hold"
    if absence.cut:
        yield "  (not followed further)"
    elif absence.nearest is not None:
        yield f"  nearest base fact: {format_fact(absence.nearest)}"
    for attempt in absence.attempts:
        lines = list(_attempt_lines(attempt, annotations))
        last = attempt is absence.attempts[-1]
        yield ("└─ " if last else "├─ ") + lines[0]
        yield from (("   " if last else "│  ") + line for line in lines[1:])
    if absence.other_rules:
        yield f"  ({absence.other_rules} more rules for {absence.goal.predicate}, whose heads have other constants)"
    if not (absence.attempts or absence.other_rules or absence.cut or absence.nearest):
        yield f"  there is no such fact, and no rule for {absence.goal.predicate}"


def _attempt_lines(attempt: Attempt, annotations: Annotations) -> Iterator[str]:
    rule, identifier = rule_notes(attempt.rule, annotations)
    yield rule.removeprefix("by ")
    yield identifier
    bindings = f"{attempt.reached:,}{'' if attempt.complete else ' or more'}"
    noun = "binding" if attempt.reached == 1 and attempt.complete else "bindings"
    yield f"   failed at {format_literal(attempt.rule.body[attempt.place])}: {bindings} {noun} got there, none further"
    if attempt.binding:
        values = ", ".join(f"{name} = {quote(value)}" for name, value in attempt.binding)
        yield f"   {'with' if attempt.reached == 1 else 'nearest, with'} {values}"
    yield from ("   " + line for line in _miss_lines(attempt.miss, annotations))


def _miss_lines(miss: Miss, annotations: Annotations) -> Iterator[str]:
    match miss:
        case MissingFact(atom, nearest, differs, because):
            yield f"there is no {format_atom(atom)}"
            if nearest is not None:
                places = ", ".join(f"{nearest.predicate.name} term {place + 1}" for place in differs)
                yield f"nearest: {format_fact(nearest)}, which differs in {places}"
            if because is not None and not because.cut:
                yield from _absence_lines(because, annotations)
        case BlockedBy(atom, proof):
            yield f"not {format_atom(atom)} is false, because this holds:"
            yield from ("  " + line for line in _proof_lines(proof, annotations))
        case WrongCount(counted):
            yield f"{counted_text(counted)} is false"
        case TestFailed(literal):
            yield f"{format_literal(literal)} is false"
        case _:
            assert_never(miss)
