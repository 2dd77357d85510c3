"""Why a fact holds over a lace, or why it does not: `lace.explain`.

Rule: an explanation costs about as much as a query for its goal: only facts that it looks at are derived.
"""

from __future__ import annotations

from collections.abc import Iterable

from lace.datalog.engine import Base, CombinedSource, Result, evaluate
from lace.datalog.engine.base import predicates_given
from lace.datalog.engine.on_demand import BaseFacts, FactsOnDemand
from lace.datalog.explain import Known, why, why_not
from lace.datalog.explain.explanation import Explanation
from lace.datalog.goals import require_known
from lace.datalog.language.annotations import Sidecar, read_annotated
from lace.datalog.language.limiting import stated_limits
from lace.datalog.language.parser import parse_atom
from lace.datalog.language.syntax import Atom, Fact
from lace.datalog.language.validate import CheckedProgram, check_program
from lace.datalog.source import FactSource
from lace.limits import EngineLimits, ExplainLimits
from lace.notation.stopping import Interrupt, never, until
from lace.porcelain.query import HasStore, base_of, profile_of

_DEFAULT_EXPLAIN_LIMITS = ExplainLimits()


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
        require_known(atom, self.checked, predicates_given(self._base.parts))
        self._derived.forget_oldest()
        row = self._known.first(atom)
        if row is None:
            return Explanation(why_not(self._known, atom, self._explain_limits), self.annotations)
        return Explanation(why(self._known, Fact(atom.predicate, row), self._explain_limits), self.annotations)


def explain(
    asked: HasStore | FactSource | Iterable[Fact],
    rules: str,
    goal: str,
    *,
    limits: EngineLimits | None = None,
    deadline_s: float | None = None,
    interrupt: Interrupt | None = None,
) -> Explanation:
    """Explain why a fact holds over a lace, a fact source or facts, or why it does not.

    Limits, `deadline_s` and `interrupt` are as in `lace.query`.

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
    return Explainer(asked, rules, limits=limits, interrupt=until(deadline_s, interrupt)).explain(goal)
