"""Every rewriting of rules and every plan of rewritings.txt, to the letter.

A section of that file is `== what it shows`, the rules, `--`, and what is made of them. Whoever changes a rewriting
reads there what becomes of each program; that the facts stay the same is proven elsewhere, against the reference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lace.datalog.language.formatting import format_fact, format_rule
from lace.datalog.language.parser import parse_atom, parse_program
from lace.datalog.language.syntax import Predicate, Program, Rule
from lace.datalog.language.validate import RAW_PROFILE, check_program
from lace.datalog.planning.demand import demand, only_what_goals_read
from lace.datalog.planning.existence import existence_counted
from lace.datalog.planning.plan import Scan, Version
from lace.datalog.planning.planner import plan_from, plan_rounds, plan_rule, plan_start
from lace.datalog.planning.ranking import ranked_predicates
from lace.datalog.planning.stratify import forbidden_cycles, reachable, read_atom, strata
from lace.datalog.planning.unfold import unfold

TEXT = Path(__file__).parent / "rewritings.txt"


def words(argument: str) -> list[str]:
    """Parts of an argument: spaces inside parentheses do not count."""
    return re.findall(r"(?:[^\s(]|\([^)]*\))+", argument)


def numbers(argument: str) -> dict[str, int]:
    """`Edge=100 Node=3`, sizes of base relations."""
    return {name: int(value) for name, value in re.findall(r"(\S+)=(\d+)", argument)}


def shown(rules: tuple[Rule, ...]) -> Iterator[str]:
    for rule in rules:
        atoms = [rule.head, *(read[0] for read in map(read_atom, rule.body) if read)]
        assert all(atom.predicate.arity == len(atom.terms) for atom in atoms)
        yield format_rule(rule)


def demanded(argument: str, text: str) -> Iterator[str]:
    """For these goals, with these sizes: `all` where facts that answers stand on are wanted too."""
    goals = [parse_atom(word) for word in words(argument) if "(" in word]
    sizes, every = numbers(argument), "all" in words(argument)
    checked = check_program(parse_program(text), RAW_PROFILE)
    if "as-they-are" in words(argument):
        found = only_what_goals_read(checked, goals)
    else:
        rows_of = (lambda atom: sizes.get(atom.predicate.name, 1)) if sizes else None
        found = demand(checked, goals, rows_of, only_answers=not every)
    yield from shown(found.checked.program.rules)
    yield from (f"seed {format_fact(fact)}" for fact in found.seeds)
    yield from (f"answer {predicate} in {there}" for predicate, there in found.answers.items())
    for predicate, copies in found.copies.items():
        yield from (f"copy {predicate} in {copy.predicate} by {copy.places} {copy.asked}" for copy in copies)
    yield f"base {' '.join(sorted(map(str, found.checked.base)))}"
    yield f"spreads {found.spreads}"


def counted(argument: str, text: str) -> Iterator[str]:
    """Rules that only ask whether something stands beyond, as counts."""
    checked = check_program(parse_program(text), RAW_PROFILE)
    found = existence_counted(checked)
    if found is checked:
        yield "the same"
    else:
        yield from shown(found.program.rules)


def unfolded(argument: str, text: str) -> Iterator[str]:
    """Kept predicates, `short` where rules of one literal are worth it, and the longest body."""
    kept = [Predicate(name, int(arity)) for name, arity in re.findall(r"(\w+)/(\d)", argument)]
    most = numbers(argument).get("most", 99)
    worth_it = (lambda rule: len(rule.body) == 1) if "short" in argument else (lambda rule: False)
    yield from shown(unfold(parse_program(text), kept, worth_it, most).rules)


def stratified(argument: str, text: str) -> Iterator[str]:
    """Components, forbidden cycles, and what a predicate reads."""
    program = parse_program(text)
    for stratum in strata(program):
        kind = " recursive" if stratum.recursive else ""
        yield f"{stratum.level}{kind} {' '.join(map(str, stratum.predicates))}"
        yield from (f"  {line}" for line in shown(stratum.rules))
    for cycle in forbidden_cycles(program):
        yield f"{cycle.edge.sign} {' > '.join(map(str, cycle.path))}"
    for name, arity in re.findall(r"(\w+)/(\d)", argument):
        goal = Predicate(name, int(arity))
        yield f"{goal} reads {' '.join(sorted(map(str, reachable(program.rules, [goal]))))}"


class Known:
    """Sizes as an argument says them: `Edge=100 Edge.0=10`, ten values at the first place; what was added is one."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self._sizes = sizes

    def rows(self, scan: Scan) -> float:
        whole = self._sizes.get(scan.predicate.name, 10)
        rows = 1.0 if scan.version is Version.DELTA else float(whole)
        for place, _ in scan.constants:
            rows /= self._sizes.get(f"{scan.predicate.name}.{place}", 1)
        return rows

    def distinct(self, scan: Scan, position: int) -> float:
        if scan.version is Version.DELTA:
            return 1.0
        return float(self._sizes.get(f"{scan.predicate.name}.{position}", self._sizes.get(scan.predicate.name, 10)))


def planned(argument: str, text: str) -> Iterator[str]:
    """Plans of the rules: over whole relations, `from=N` a literal that was added, or `rounds` of a recursion."""
    sizes, program = Known(numbers(argument)), parse_program(text)
    ranks = ranked_predicates(program)
    if "rounds" in argument:
        for stratum in strata(program):
            plans = [*plan_start(stratum, sizes, ranks), "then", *plan_rounds(stratum, sizes, ranks)]
            yield from (line for plan in plans for line in str(plan).split("\n"))
        return
    for rule in program.rules:
        start = numbers(argument).get("from")
        plan = (
            plan_rule(rule, sizes, ranks)
            if start is None
            else plan_from(rule, start, {start: Version.DELTA}, sizes, ranks)
        )
        yield from str(plan).split("\n")


SHOWN: dict[str, Callable[[str, str], Iterator[str]]] = {
    "demand": demanded,
    "beyond": counted,
    "unfold": unfolded,
    "strata": stratified,
    "plan": planned,
}


def sections() -> Iterator[tuple[str, str, list[str]]]:
    for section in TEXT.read_text(encoding="utf-8").split("== ")[1:]:
        title, _, rest = section.partition("\n")
        rules, _, made = rest.partition("\n--\n")
        yield title, rules, made.rstrip("\n").split("\n")


SECTIONS = list(sections())


@pytest.mark.parametrize(("title", "rules", "made"), SECTIONS, ids=[title for title, _, _ in SECTIONS])
def test_rules_become_what_is_written(title: str, rules: str, made: list[str]) -> None:
    kind, _, argument = title.partition(" ")
    assert list(SHOWN[kind](argument, rules)) == made


def test_every_kind_is_shown() -> None:
    assert {title.partition(" ")[0] for title, _, _ in SECTIONS} == set(SHOWN)
    assert parse_program("") == Program(())
