"""What a person should know before an exchange about exposure, in plain words (020-DISC-08, P32).

Rule: said from the texts alone, before any record is read; each notice names the choice that would change it.
"""

from __future__ import annotations

from collections.abc import Iterable

from lace.datalog.language.syntax import Positive, Predicate, Rule
from lace.facts.predicates import RECORD_PREDICATES, SELECT_ADVERTISED, SELECT_HAVE
from lace.facts.views import record_atoms
from lace.policy.lower import LoweredPolicy, LoweringOptions, ViewKind
from lace.policy.operand import Module
from lace.values import dataclass


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to know: a code for programs, a sentence for people, and what would change it."""

    code: str
    text: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.text} {self.remedy}"


EXPOSE = (
    "`--expose selected` shows the peer's rules what your own selector selects, `--expose FILE` what its "
    "AllowQueryRecord rules allow, `--expose all` every record."
)


def exposure_notices(policy: LoweredPolicy, options: LoweringOptions) -> tuple[Notice, ...]:
    """What follows from showing the peer's rules nothing; empty when they are shown something."""
    if policy.view is not ViewKind.NOTHING:
        return ()
    peer = policy.plan.operands[1 - policy.local_index].module
    why = "Nothing is exposed to this peer" if policy.viewer else "This peer has no settled identity yet"
    notices = []
    if not can_select_unseen(peer, SELECT_HAVE):
        text = f"{why}: its SelectHave needs {_needs(peer)}, so it selects nothing here and nothing will be sent."
        notices.append(Notice("peer-selects-nothing", text, EXPOSE))
    elif options.send_gate:
        text = f"{why}, and only exposed records are sent, so nothing will be sent."
        notices.append(
            Notice("send-gate-closed", text, f"{EXPOSE} In Python `send_gate=False` sends what both rules select.")
        )
    if not can_select_unseen(peer, SELECT_ADVERTISED):
        text = f"{why}: its SelectAdvertised needs {_needs(peer)} too, so nothing will be requested."
        notices.append(Notice("peer-lets-request-nothing", text, EXPOSE))
    return tuple(notices)


def can_select_unseen(module: Module, goal: Predicate) -> bool:
    """Whether a goal can have facts when no record fact is visible, as far as the rules' texts tell."""
    derivable: set[Predicate] = set()
    waiting = list(module.rules)
    defined = {rule.head.predicate for rule in waiting}
    while True:
        found = {rule.head.predicate for rule in waiting if _may_fire(rule, derivable, defined)} - derivable
        if not found:
            return goal in derivable
        derivable |= found


def _may_fire(rule: Rule, derivable: Iterable[Predicate], defined: Iterable[Predicate]) -> bool:
    for literal in rule.body:
        if isinstance(literal, Positive):
            predicate = literal.atom.predicate
            if predicate in RECORD_PREDICATES or (predicate in defined and predicate not in derivable):
                return False
    return True


def _needs(module: Module) -> str:
    names = sorted({atom.predicate.name for atom in record_atoms(module.rules)})
    return " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"
