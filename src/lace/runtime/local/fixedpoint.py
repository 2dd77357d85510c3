"""What two stores remember of their last local exchange, so that nothing to do is found out at once (050, cursors).

Rule: it is used only if everything that an evaluation could depend on is as it was at the last fixed point, on both
sides; a plan or an exposure that reads time is never remembered. Like every cursor it is local state and no proof.
"""

from __future__ import annotations

import json

from lace.errors import LaceError
from lace.facts.predicates import CLOCK_SKEW_SECONDS, START_TAI, TICK_TAI
from lace.interlace.result import InterlaceResult
from lace.notation.digest import digest
from lace.notation.identifiers import ExchangePlanId
from lace.policy.compile import ExchangePlan, agree
from lace.policy.rewrite import body_atoms
from lace.runtime.local.party import Party
from lace.store.base import StoreCursor

NAMESPACE = "exchange"
Cursors = tuple[StoreCursor, StoreCursor]
_TIME = frozenset((START_TAI, TICK_TAI, CLOCK_SKEW_SECONDS))
_OURS, _THEIRS = "advertised_to_peer", "advertised_by_peer"


class LastFixedPoint:
    """The last fixed point of a pair of parties."""

    def __init__(self, first: Party, second: Party) -> None:
        self._parties = (first, second)
        self._plan: ExchangePlan | None = None
        if all(not party.terms.is_open and (party.cursor_key or party.here) for party in self._parties):
            try:
                plan = agree(first.terms.module, second.terms.module, lowering=first.terms.lowering)
            except LaceError:
                return  # the exchange itself says why
            self._plan = None if _reads_time(plan, first, second) else plan

    def is_current(self) -> bool:
        """Whether nothing changed since the last fixed point."""
        return self._plan is not None and all(self._kept(index) is not None for index in (0, 1))

    def results(self) -> tuple[InterlaceResult, InterlaceResult]:
        """The results of an exchange that has nothing to do."""
        first, second = (self._result(index) for index in (0, 1))
        return first, second

    def remember(self, results: tuple[InterlaceResult, InterlaceResult], cursors: Cursors) -> None:
        """Keep this fixed point, if it is one and nothing was refused on the way.

        `cursors` are the moments of the last evaluations: nothing stored after them was evaluated.
        """
        if self._plan is None or not all(_is_clean(result) for result in results):
            return
        mark = self._mark(cursors)
        for index, (party, result) in enumerate(zip(self._parties, results, strict=True)):
            sizes = {_OURS: result.advertised_to_peer, _THEIRS: result.advertised_by_peer}
            value = json.dumps([mark, sizes]).encode()
            party.store.put_setting(NAMESPACE, self._key(index), value)

    def _kept(self, index: int) -> dict[str, int] | None:
        value = self._parties[index].store.get_setting(NAMESPACE, self._key(index))
        if value is None:
            return None
        mark, sizes = json.loads(value)
        first, second = (party.store.cursor() for party in self._parties)
        return sizes if mark == self._mark((first, second)) else None

    def _result(self, index: int) -> InterlaceResult:
        sizes = self._kept(index) or {}
        return InterlaceResult(
            exchange_plan_id=self._plan_id(),
            peer_verifier=self._parties[1 - index].here,
            fixed_point=True,
            advertised_to_peer=sizes.get(_OURS, 0),
            advertised_by_peer=sizes.get(_THEIRS, 0),
        )

    def _plan_id(self) -> ExchangePlanId | None:
        return None if self._plan is None else self._plan.id

    def _key(self, index: int) -> str:
        party, peer = self._parties[index], self._parties[1 - index]
        return f"{index} {self._plan_id()} {peer.here or party.cursor_key}"

    def _mark(self, cursors: Cursors) -> str:
        """Everything that an evaluation could depend on."""
        parts: list[object] = [str(self._plan_id())]
        for party, cursor in zip(self._parties, cursors, strict=True):
            terms = party.terms
            exposures = [exposure.id for exposure in terms.exposures]
            limits = [repr(limit) for limit in (terms.limits, terms.engine_limits, terms.record_limits)]
            gates = [terms.send_gate, terms.trust_peer, terms.shows_unfinished]
            parts.append([cursor.record, cursor.removal, exposures, party.here, *gates])
            parts.append(limits)
        return digest(json.dumps(parts).encode()).hex()


def _is_clean(result: InterlaceResult) -> bool:
    return result.is_converged


def _reads_time(plan: ExchangePlan, *parties: Party) -> bool:
    if plan.reads(*_TIME):
        return True
    atoms = (
        atom for party in parties for exposure in party.terms.exposures for atom in body_atoms(exposure.program.rules)
    )
    return any(atom.predicate in _TIME for atom in atoms)
