"""Exchanges between two laces in this process, as a developer's verbs (110, 050 operation wrappers).

Rule: a verb contributes selectors and exposure and then exchanges; it never commands the other side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Self

from lace.errors import NotConverged
from lace.interlace.result import ExchangeStatus, InterlaceResult
from lace.interlace.setup.terms import Rules
from lace.notation.identifiers import RecordHash, Verifier
from lace.notation.stopping import Interrupt, until
from lace.policy.compile import agree
from lace.policy.compose import union
from lace.policy.exposure import Exposure
from lace.policy.exposure import expose as expose_by
from lace.policy.lower import LoweringOptions, lower
from lace.policy.notice import Notice, exposure_notices
from lace.policy.operand import Module
from lace.policy.origin import viewer_of
from lace.policy.select import select_all, select_text
from lace.porcelain.lace import Lace
from lace.porcelain.misuse import require_lace, text_of
from lace.porcelain.pythonwords import pythonic
from lace.porcelain.visibility import NotExposed, held_back
from lace.records.keys import Signer
from lace.runtime.clock import SystemClock
from lace.runtime.local.follow import LocalFollow
from lace.runtime.local.local import OnEvent, exchange
from lace.runtime.local.party import Party, local_terms
from lace.values import dataclass

Select = str | Module | Iterable[str | Module] | None
"""Which records: rules, a coordinate or its beginning, a hash, several of these, or None for all."""
Expose = str | Exposure | Iterable[str | Exposure]
"""What a peer may see: `all`, `selected`, `none`, rules, or several of these, all of which must allow a record."""


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What an exchange did on both sides, with notices about it."""

    first: InterlaceResult
    second: InterlaceResult
    notices: tuple[tuple[Notice, ...], tuple[Notice, ...]] = ((), ())
    held_back: tuple[NotExposed | None, NotExposed | None] = (
        None,
        None,
    )  # by each side's own exposure, if nothing moved

    @property
    def is_complete(self) -> bool:
        """Whether it ended at a fixed point, not at a limit before it."""
        return self.first.is_complete and self.second.is_complete

    @property
    def is_converged(self) -> bool:
        """Whether both sides hold what both rules select: complete, with nothing refused or held back."""
        return self.first.is_converged and self.second.is_converged

    @property
    def status(self) -> ExchangeStatus:
        """How it ended: the worse of what the two sides saw."""
        return max(self.first.status, self.second.status, key=list(ExchangeStatus).index)

    def raise_for_status(self) -> Self:
        """NotConverged unless both sides have everything that both rules select; else this value."""
        if not self.is_converged:
            raise NotConverged(self.status, self.first.missing or self.second.missing)
        return self

    @property
    def moved(self) -> int:
        """How many records were stored, on either side."""
        return len(self.first.received_hashes) + len(self.second.received_hashes)


def selector(select: Select) -> Module:
    """The selector that words name: None for everything, a coordinate or its beginning, a hash, rules, or several."""
    if select is None:
        return select_all()
    if isinstance(select, Module):
        return select
    if not isinstance(select, str | Iterable):
        text_of(select, "select", "//group//app//")
    if not isinstance(select, str):
        parts = [selector(part) for part in select]
        return union(parts) if parts else select_all()
    return select_text(select)


def exposures(expose: Expose, module: Module) -> tuple[Exposure, ...]:
    """The exposure that words name: `all`, `selected`, `none`, rules, or several, all of which must allow a record."""
    if isinstance(expose, Exposure):
        return (expose,)
    if not isinstance(expose, str | Iterable):
        text_of(expose, "expose", "selected")
    if not isinstance(expose, str):
        return tuple(one for part in expose for one in exposures(part, module))
    return expose_by(expose, selector=module)


def rules_for(lace: Lace, select: Select, expose: Expose | None) -> Rules:
    """The rules of a side: what the words say and, where there are none, what the policy of its lace says.

    Without a policy, no selector means everything and no exposure means nothing.
    """
    policy = lace.policy() if select is None or expose is None else None
    module = policy.module if select is None and policy is not None else selector(select)
    if expose is not None:
        return Rules(module, exposures(expose, module))
    return Rules(module, policy.exposures if policy is not None else ())


def interlace(
    first: Lace,
    second: Lace,
    *,
    select: Select = None,
    expose: Expose | None = None,
    their_select: Select = None,
    their_expose: Expose | None = None,
    here: Verifier | None = None,
    there: Verifier | None = None,
    send_gate: bool = True,
    receipts: Signer | None = None,
    on_event: OnEvent | None = None,
    deadline_s: float | None = None,
    interrupt: Interrupt | None = None,
) -> Exchanged:
    """Exchange records between two laces until neither wants more.

    `select` and `expose` hold for both, unless `their_select` and `their_expose` are given. A side for which neither is
    given goes by the policy of its lace. Without a policy nothing is exposed by default, so nothing is sent: the
    result's notices say so. `on_event` runs in this thread; an exception it raises
    ends the exchange and is raised here.

    After `deadline_s` seconds, or once `interrupt` (asked every few milliseconds, by this thread) returns True, it ends
    in `CallStopped`. What was stored stays, and the next exchange goes on from there.
    """
    stop = until(deadline_s, interrupt)
    if iscoroutinefunction(on_event):
        raise TypeError(
            "on_event of an exchange in this process cannot be async, because nobody awaits it; use lace.follow"
        )
    parties = _parties(
        first, second, select, expose, their_select, their_expose, here, there, send_gate=send_gate, receipts=receipts
    )
    results = exchange(*parties, on_event=on_event, stop=stop)
    said = notices(*parties)
    found = Exchanged(*results, notices=(pythonic(said[0]), pythonic(said[1])))
    return found if found.moved else replace(found, held_back=_held_back(parties, results, stop))


def _held_back(
    parties: tuple[Party, Party], results: tuple[InterlaceResult, InterlaceResult], stop: Interrupt
) -> tuple[NotExposed | None, NotExposed | None]:
    """What each side's own exposure held back from the other."""
    at = SystemClock().tai()
    first, second = (
        None if result.advertised_to_peer else held_back(party.store, party.terms, peer.here, at=at, stop=stop)
        for party, peer, result in zip(parties, reversed(parties), results, strict=True)
    )
    return first, second


def follow(
    first: Lace,
    second: Lace,
    *,
    select: Select = None,
    expose: Expose | None = None,
    their_select: Select = None,
    their_expose: Expose | None = None,
    here: Verifier | None = None,
    there: Verifier | None = None,
    send_gate: bool = True,
) -> LocalFollow:
    """An open exchange between two laces: iterate over it for `(side, event)`, close it with `async with`."""
    parties = _parties(
        first, second, select, expose, their_select, their_expose, here, there, send_gate=send_gate, is_open=True
    )
    return LocalFollow(*parties)


def fetch(
    into: Lace,
    source: Lace,
    target: str,
    *,
    expose: Expose = "all",
    deadline_s: float | None = None,
    interrupt: Interrupt | None = None,
) -> Exchanged:
    """Fetch what a hash, coordinate or prefix names; `source` shows what it exposes."""
    return interlace(
        into,
        source,
        select=target,
        expose="none",
        their_expose=expose,
        their_select="all",
        deadline_s=deadline_s,
        interrupt=interrupt,
    )


def publish(
    source: Lace,
    into: Lace,
    records: Sequence[RecordHash | str],
    *,
    deadline_s: float | None = None,
    interrupt: Interrupt | None = None,
) -> Exchanged:
    """Send exactly these records to another lace; `into` takes what its own rules select."""
    chosen = [str(record) for record in records]
    return interlace(
        source,
        into,
        select=chosen,
        expose="selected",
        their_expose="none",
        their_select="all",
        deadline_s=deadline_s,
        interrupt=interrupt,
    )


def notices(first: Party, second: Party) -> tuple[tuple[Notice, ...], tuple[Notice, ...]]:
    """What each side should know before the exchange, in plain language."""
    plan = agree(first.terms.module, second.terms.module)
    sides = []
    for index, (party, peer) in enumerate(((first, second), (second, first))):
        terms = party.terms
        options = LoweringOptions(send_gate=terms.send_gate, trust_peer=terms.trust_peer)
        viewer = viewer_of(plan.operands[1 - index].origin, peer.here)
        policy = lower(plan, local_index=index, viewer=viewer, exposures=terms.exposures, options=options)
        sides.append(exposure_notices(policy, options))
    return sides[0], sides[1]


def _parties(
    first: Lace,
    second: Lace,
    select: Select,
    expose: Expose | None,
    their_select: Select,
    their_expose: Expose | None,
    here: Verifier | None,
    there: Verifier | None,
    *,
    send_gate: bool,
    is_open: bool = False,
    receipts: Signer | None = None,
) -> tuple[Party, Party]:
    require_lace(first)
    require_lace(second)
    ours = rules_for(first, select, expose)
    their_choice = select if their_select is None else their_select
    theirs_are = rules_for(second, their_choice, expose if their_expose is None else their_expose)
    mine, theirs = local_parties(
        first,
        second,
        (ours.module, ours.exposures),
        (theirs_are.module, theirs_are.exposures),
        send_gate=send_gate,
        is_open=is_open,
    )
    return replace(mine, here=here, receipts=receipts), replace(theirs, here=there)


Choices = tuple[Module, tuple[Exposure, ...]]


def local_parties(
    first: Lace, second: Lace, ours: Choices, theirs: Choices, *, send_gate: bool = True, is_open: bool = False
) -> tuple[Party, Party]:
    """Two laces as the sides of a local exchange, each with its selector, its exposure and its limits."""

    def party(lace: Lace, choices: Choices, peer: Lace) -> Party:
        terms = local_terms(*choices, send_gate=send_gate, is_open=is_open, record_limits=lace.limits)
        return Party(store=lace.store, terms=terms, cursor_key=_place(peer))

    return party(first, ours, second), party(second, theirs, first)


def _place(lace: Lace) -> str:
    """A key under which to remember the other lace; empty for one in memory, which is not remembered."""
    path = getattr(lace.store, "path", None)
    return str(path.resolve()) if isinstance(path, Path) else ""
