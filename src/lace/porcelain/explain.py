"""Why a fact holds over a lace, or why it does not: `lace.explain`.

Rule: an explanation costs about as much as a query for its goal: only facts that it looks at are derived.
"""

from __future__ import annotations

from collections.abc import Iterable

from lace.datalog.engine import Base, CombinedSource, Result, evaluate
from lace.datalog.engine.on_demand import BaseFacts, FactsOnDemand
from lace.datalog.explain import Absence, Known, Proof, why, why_not
from lace.datalog.explain.data import Json, absence_json, proof_dot, proof_json
from lace.datalog.explain.text import format_absence, format_proof
from lace.datalog.language.annotations import Sidecar, read_annotated
from lace.datalog.language.formatting import format_atom
from lace.datalog.language.limiting import stated_limits
from lace.datalog.language.parser import parse_atom
from lace.datalog.language.syntax import Atom, Fact
from lace.datalog.language.validate import CheckedProgram, check_program
from lace.datalog.meter import Interrupt, never
from lace.datalog.source import FactSource
from lace.errors import NotFound
from lace.limits import EngineLimits, ExplainLimits
from lace.porcelain.query import HasStore, base_of, profile_of, require_known
from lace.values import dataclass

_DEFAULT_EXPLAIN_LIMITS = ExplainLimits()


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """A proof or an absence, with the annotations of its rules; as text it is a tree for people."""

    found: Proof | Absence
    annotations: Sidecar

    @property
    def holds(self) -> bool:
        """Whether the goal holds."""
        return isinstance(self.found, Proof)

    def __str__(self) -> str:
        if isinstance(self.found, Proof):
            return format_proof(self.found, self.annotations)
        return format_absence(self.found, self.annotations)

    def to_json(self) -> Json:
        """The explanation for programs."""
        if isinstance(self.found, Proof):
            return proof_json(self.found, self.annotations)
        return absence_json(self.found, self.annotations)

    def to_dot(self) -> str:
        """A proof as a Graphviz graph."""
        if isinstance(self.found, Proof):
            return proof_dot(self.found, self.annotations)
        raise NotFound(f"{format_atom(self.found.goal)} does not hold, so there is no proof to draw")


class Explainer:
    """Rules over one snapshot, ready to explain facts; what an explanation needs is derived on demand."""

    def __init__(
        self,
        asked: HasStore | FactSource | Iterable[Fact],
        rules: str,
        *,
        name: str = "<rules>",
        limits: EngineLimits | None = None,
        explain_limits: ExplainLimits = _DEFAULT_EXPLAIN_LIMITS,
        interrupt: Interrupt = never,
    ) -> None:
        limits = limits or stated_limits(rules, name=name)
        self._base = base_of(asked, limits) if isinstance(asked, HasStore) else Base(asked, limits)
        annotated = read_annotated(rules, name=name, limits=limits)
        self.annotations: Sidecar = annotated.sidecar
        self.checked: CheckedProgram = check_program(annotated.program, profile_of(self._base), limits)
        self._derived = FactsOnDemand(self.checked, self._base, limits, interrupt)
        in_columns = self._base.columns is not None
        source: FactSource = CombinedSource(self._base.parts) if in_columns else BaseFacts(self._base)
        most = {} if in_columns else {"max_indexed_rows": 0}
        self._known = Known(self.checked, source, self._derived, interrupt=interrupt, **most)
        self._limits = limits
        self._explain_limits = explain_limits

    @property
    def result(self) -> Result:
        """The evaluation behind the last explanation; before the first one, that of the whole program."""
        return self._derived.latest or evaluate(self.checked, self._base, limits=self._limits)

    def explain(self, goal: str | Atom) -> Explanation:
        """A proof of the first fact that matches the goal, or why there is none."""
        atom = parse_atom(goal, limits=self._limits) if isinstance(goal, str) else goal
        require_known(atom, self.checked, self._base)
        self._derived.forget_oldest()
        row = self._known.first(atom)
        if row is None:
            return Explanation(why_not(self._known, atom, self._explain_limits), self.annotations)
        return Explanation(why(self._known, Fact(atom.predicate, row), self._explain_limits), self.annotations)


def explain(
    asked: HasStore | FactSource | Iterable[Fact], rules: str, goal: str, *, limits: EngineLimits | None = None
) -> Explanation:
    """Explain why a fact holds over a lace, a fact source or facts, or why it does not; limits as in `lace.query`.

    >>> from lace.datalog.language.parser import parse_facts
    >>> facts = list(parse_facts("Edge('a','b')"))
    >>> print(explain(facts, "Path(X,Y) :- Edge(X,Y).", "Path('b',Y)"), end="")
    Path('b',Y) does not hold
    └─ Path(X,Y) :- Edge(X,Y).
          U.UtqFv_rGAYyTiI1em8IExr5dKAbWmov3uOMItorCByx
          failed at Edge(X,Y): 1 binding got there, none further
          with X = 'b'
          there is no Edge('b',Y)
    """
    return Explainer(asked, rules, limits=limits).explain(goal)
