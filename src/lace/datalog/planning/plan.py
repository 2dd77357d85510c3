"""The query plan (030, evaluation): what every executor runs.

Rule: a plan speaks of predicates, variables and texts only; codes, columns and data frames belong to executors.

A rule becomes one chain of nodes that starts at `Unit` or a `Scan` and ends in `Project`. Semi-naive evaluation is
part of the plan: a scan says whether it reads a whole relation, what the last round added, or what stood before.
"""

from __future__ import annotations

from enum import Enum

from lace.datalog.language.formatting import format_literal, format_rule, format_term
from lace.datalog.language.syntax import Compare, Constant, Operator, Predicate, Rule, Term, TextShape, Unequal
from lace.values import dataclass

Test = Unequal | Compare | TextShape


class Version(Enum):
    """Which facts of a relation a scan reads while its stratum is being completed."""

    ALL = "all"
    DELTA = "delta"  # what the last round added
    OLD = "old"  # all without delta


@dataclass(frozen=True, slots=True)
class Scan:
    """The facts of a predicate that match constants and repeated variables; binds its variables."""

    predicate: Predicate
    variables: tuple[tuple[int, str], ...]  # (position, name): the first place of each variable that is used elsewhere
    constants: tuple[tuple[int, str], ...] = ()
    equal: tuple[tuple[int, int], ...] = ()  # positions that hold one value
    version: Version = Version.ALL

    def __str__(self) -> str:
        shown = ["_"] * self.predicate.arity
        for position, text in self.constants:
            shown[position] = format_term(Constant(text))
        for position, name in self.variables:
            shown[position] = name
        for first, later in self.equal:
            shown[later] = shown[first] = shown[first] if shown[first] != "_" else f"={first}"
        mark = "" if self.version is Version.ALL else f" {self.version.value}"
        return f"Scan{mark} {self.predicate.name}({','.join(shown)})"


@dataclass(frozen=True, slots=True)
class Unit:
    """One row without columns: the input of a rule whose body binds nothing."""

    def __str__(self) -> str:
        return "Unit"


@dataclass(frozen=True, slots=True)
class Join:
    """Each input row with every matching fact of the scan; `keep` are the variables still needed afterwards."""

    input: Node
    scan: Scan
    on: tuple[str, ...]
    keep: tuple[str, ...]

    def __str__(self) -> str:
        kind = "Join" if self.binds else "Semijoin"
        return f"{kind} on ({','.join(self.on)}) {self.scan}"

    @property
    def binds(self) -> tuple[tuple[int, str], ...]:
        """What the scan adds: (position, variable) that the input does not have."""
        return tuple(pair for pair in self.scan.variables if pair[1] not in self.on)


@dataclass(frozen=True, slots=True)
class Meet:
    """Each input row with every value of some variables that all of the scans have for what the row knows.

    Several variables are bound one after the other, and each row may take its own order. What a scan says of variables
    that are bound later is left out here; later nodes read it.
    """

    input: Node
    names: tuple[str, ...]
    scans: tuple[Scan, ...]  # each binds one of them
    keep: tuple[str, ...]

    @property
    def known(self) -> tuple[str, ...]:
        """The other variables that the scans speak of: the input has them."""
        return tuple(sorted({name for scan in self.scans for _, name in scan.variables}.difference(self.names)))

    def __str__(self) -> str:
        return f"Meet in {' or '.join(self.names)} of {', '.join(map(str, self.scans))}"


@dataclass(frozen=True, slots=True)
class Without:
    """The input rows that no fact of the scan matches (negation)."""

    input: Node
    scan: Scan
    on: tuple[str, ...]

    def __str__(self) -> str:
        return f"Without on ({','.join(self.on)}) {self.scan}"


@dataclass(frozen=True, slots=True, eq=False)  # one object per ranked place, so that it is a quick key
class Rank:
    """How a counted predicate orders its candidates, so that a count is a position (030-CARD-12).

    A candidate row has an identity, a key and perhaps group columns. The facts counted for the identity x are the
    distinct y of the same group whose (key, identity) stands beyond that of x.
    """

    candidates: Scan  # binds ID, KEY (absent when the identity itself is compared) and groups
    kind: str  # how keys compare: "int" or "lex"
    operator: Operator  # key of y against key of x
    tie_kind: str  # how identities compare on equal keys, "" when equal keys are not counted
    tie_operator: Operator
    groups: tuple[str, ...]
    others_only: bool = False  # x is not counted for itself, even if it has several keys
    place: int = 0  # of x in the counted atom
    group_places: tuple[tuple[int, int], ...] = ()  # of groups that the counted atom names: there, in candidates

    def __str__(self) -> str:
        tie = f", ties {self.tie_kind} {self.tie_operator}" if self.tie_kind else ""
        return f"rank {self.kind} {self.operator}{tie} of {self.candidates}"


@dataclass(frozen=True, slots=True)
class CountTest:
    """The input rows for which the number of matching facts stands in a relation to a bound."""

    input: Node
    scan: Scan
    on: tuple[str, ...]
    operator: Operator
    bound: Term
    rank: Rank | None = None

    @property
    def identity(self) -> str:
        """The variable whose rank is the count."""
        assert self.rank is not None
        return dict(self.scan.variables)[self.rank.place]

    def __str__(self) -> str:
        counted = str(self.rank) if self.rank else str(self.scan)
        return f"CountTest on ({','.join(self.on)}) count {self.operator} {format_term(self.bound)} of {counted}"


@dataclass(frozen=True, slots=True)
class Filter:
    """The input rows that pass a builtin."""

    input: Node
    test: Test

    def __str__(self) -> str:
        return f"Filter {format_literal(self.test)}"


@dataclass(frozen=True, slots=True)
class Project:
    """The head of the rule, once per distinct row."""

    input: Node
    predicate: Predicate
    terms: tuple[Term, ...]

    def __str__(self) -> str:
        return f"Project {self.predicate.name}({','.join(map(format_term, self.terms))})"


Node = Unit | Scan | Join | Meet | Without | CountTest | Filter
AnyNode = Node | Project


def chain(node: AnyNode) -> tuple[AnyNode, ...]:
    """The nodes of a plan from its start to `node`."""
    found: list[AnyNode] = [node]
    while not isinstance(node, Unit | Scan):
        node = node.input
        found.append(node)
    return tuple(reversed(found))


@dataclass(frozen=True, slots=True)
class RulePlan:
    """One rule, read in one order."""

    rule: Rule
    root: Project

    def __str__(self) -> str:
        lines = [format_rule(self.rule)]
        lines += [f"  {'  ' * depth}{node}" for depth, node in enumerate(reversed(chain(self.root)))]
        return "\n".join(lines)
