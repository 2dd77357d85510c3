"""Why something does or does not happen, as data: `lace.why`, `view`, `check`, `plan` and `status` (110).

Rule: the same functions answer the command line and Python. What they find has a reason and a remedy, and a remedy is
written in the words of the one who asks: options for the command, arguments here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lace.errors import CallStopped, InvalidInput, InvalidLacegram, LaceError
from lace.iltp.address import Address
from lace.interlace.setup.terms import Rules, Terms
from lace.limits import EngineLimits
from lace.notation.fact import Fact, Predicate
from lace.notation.identifiers import ExchangePlanId, RecordHash, Verifier
from lace.notation.stopping import Interrupt, asking, until
from lace.notation.tai import TAI
from lace.policy.notice import Notice
from lace.policy.origin import Viewer
from lace.porcelain.completeness import Incomplete
from lace.porcelain.exchange import Expose, Select, exposures, local_parties, rules_for, selector
from lace.porcelain.lace import Lace, open_lace
from lace.porcelain.listing import Row
from lace.porcelain.misuse import require_lace
from lace.porcelain.network import Caller, terms_of
from lace.porcelain.pythonwords import in_python, pythonic
from lace.porcelain.remotes import Remote, find_remote, remotes_of
from lace.porcelain.status import RemoteStatus, asked_status, conflicts, known_status
from lace.runtime.clock import SystemClock
from lace.runtime.identity.keyring import KeyRing
from lace.transports.tls import ClientTls
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.datalog.language.validate import Profile
    from lace.porcelain.why import Walk

_DEFAULT_LIMITS = EngineLimits()

Kind = Literal["error", "doubt"]
"""An error keeps rules from running; a doubt is a likely mistake: it is allowed and can never match."""
For = Literal["auto", "store", "selector", "exposure", "raw"]
"""What rules are for: a store, a selector, an exposure, facts of any kind; `auto` tells from what they define."""


# why


def why(
    lace: Lace,
    record: str,
    peer: Lace | None = None,
    *,
    select: Select = None,
    expose: Expose | None = None,
    their_select: Select | Literal["unknown"] = "unknown",
    their_expose: Expose | None = None,
    here: Verifier | None = None,
    there: Verifier | None = None,
    deadline_s: float | None = None,
    interrupt: Interrupt | None = None,
) -> Walk:
    """At which gate a record stops on its way to a peer, or from it if only the peer has it.

    `stopped` is the gate that is shut, with `said` and `remedy`; None if it passes all. `unknown` are the gates that
    only the other side can tell of: all of its own, unless its lace is given as `peer` or its rules as `their_select`.
    `deadline_s` and `interrupt` are as in `lace.query`.
    """
    from lace.porcelain.why import WhySide, known_target, walk

    require_lace(lace)
    if peer is not None:
        require_lace(peer)
    ours = rules_for(lace, select, expose)
    mine = WhySide(called="here", lace=lace, module=ours.module, exposures=ours.exposures, verifier=here)
    asked = None if their_select == "unknown" else their_select
    theirs = None
    if peer is not None:
        theirs = rules_for(peer, select if their_select == "unknown" else asked, their_expose)
    elif their_select != "unknown":
        module = selector(asked)
        theirs = Rules(module, () if their_expose is None else exposures(their_expose, module))
    other = WhySide(
        called="there",
        lace=peer,
        module=None if theirs is None else theirs.module,
        exposures=() if theirs is None else theirs.exposures,
        verifier=there,
    )
    target = known_target(lace, record) if peer is None else _known_to(lace, peer, record)
    comes = not lace.store.have(target) and peer is not None and peer.store.have(target)
    sides, stop = (other, mine) if comes else (mine, other), until(deadline_s, interrupt)
    walked = walk(target, *sides, now=lace.clock.tai(), stop=stop)
    gates = [replace(gate, remedy=in_python(gate.remedy), said=in_python(gate.said)) for gate in walked.gates]
    return replace(walked, gates=gates)


def _known_to(lace: Lace, peer: Lace, record: str) -> RecordHash:
    from lace.porcelain.why import known_target

    try:
        return known_target(lace, record)
    except LaceError:
        return known_target(peer, record)


# view


@dataclass(frozen=True, slots=True, eq=False)
class PeerView:
    """What one peer's rules could see of a lace: records that are not in it do not exist for them."""

    lace: Lace
    viewer: Viewer
    records: frozenset[str]

    def __len__(self) -> int:
        return len(self.records)

    def __contains__(self, record: object) -> bool:
        return record in self.records

    def facts(self) -> Iterator[Fact]:
        """The record facts that the peer's rules could read."""
        from lace.porcelain.visibility import visible_facts

        return visible_facts(self.lace.store.snapshot(), self.records)


def view(
    lace: Lace,
    viewer: Verifier | str,
    *,
    expose: Expose | None = None,
    select: Select = None,
    at: TAI | None = None,
    deadline_s: float | None = None,
    interrupt: Interrupt | None = None,
) -> PeerView:
    """What the rules of a peer with this verifier could see of a lace, now or at a time.

    `deadline_s` and `interrupt` are as in `lace.query`.
    """
    from lace.porcelain.visibility import visible_records

    require_lace(lace)
    seen_by = Viewer(str(viewer))
    shown = rules_for(lace, select, expose).exposures
    moment, stop = at or lace.clock.tai(), until(deadline_s, interrupt)
    admitted = visible_records(lace.store.snapshot(), seen_by, shown, at=moment, stop=stop)
    return PeerView(lace, seen_by, admitted)


# check


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something wrong with rules: what, where, and what to write instead."""

    kind: Kind
    rule: str
    message: str
    line: int
    column: int
    found: str
    remedy: str
    picture: str

    def __str__(self) -> str:
        lines = [f"{self.line}:{self.column}: {self.message}", *(f"  {line}" for line in self.picture.split("\n"))]
        return "\n".join([*lines, f"  {self.remedy}"] if self.remedy else lines).rstrip()


def check(rules: str, *, purpose: For = "auto", given: Iterable[Predicate] = ()) -> list[Finding]:
    """Every error in rules, and if there is none every likely mistake; empty if there is neither.

    `given` are predicates of facts that you supply, which no record has.

    >>> [found.message for found in check("Path(X,Z) :- Edge(X,Y).")]
    ['variable Z is in the head but in no positive body atom']
    """
    checked = check_rules(rules, profile=_profile(purpose), given=given)
    return [_finding("error", one) for one in checked.errors] + [_finding("doubt", one) for one in checked.doubts]


@dataclass(frozen=True, slots=True)
class CheckedRules:
    """What is wrong with one text of rules."""

    errors: Sequence[InvalidLacegram]
    doubts: Sequence[InvalidLacegram]
    rules: int


def check_rules(
    rules: str,
    *,
    profile: Profile | None = None,
    given: Iterable[Predicate] = (),
    name: str = "<rules>",
    limits: EngineLimits = _DEFAULT_LIMITS,
) -> CheckedRules:
    """The same as the errors that would be raised; without a profile, that of what the rules define."""
    from lace.datalog.language.annotations import read_annotated_all
    from lace.datalog.language.validate import check_all
    from lace.policy.exposure import EXPOSURE_PROFILE, for_some_viewer
    from lace.policy.lint import doubts, profile_of

    source, errors = read_annotated_all(rules, name=name, limits=limits)
    chosen = profile or profile_of(source.program)
    program = for_some_viewer(source.program) if chosen is EXPOSURE_PROFILE else source.program
    errors = [*errors, *check_all(program, chosen, limits)]
    found = [] if errors else doubts(source.program, chosen, given)
    return CheckedRules(sorted(errors, key=lambda one: (one.line, one.column)), found, len(source.program.rules))


def _finding(kind: Kind, error: InvalidLacegram) -> Finding:
    return Finding(
        kind=kind,
        rule=error.rule,
        message=error.message,
        line=error.line,
        column=error.column,
        found=error.found,
        remedy=in_python(error.advice),
        picture=error.picture,
    )


def _profile(purpose: For) -> Profile | None:
    from lace.datalog.language.validate import LOCAL_PROFILE, RAW_PROFILE
    from lace.policy.exposure import EXPOSURE_PROFILE
    from lace.policy.operand import SELECTOR_PROFILE

    named = {"store": LOCAL_PROFILE, "selector": SELECTOR_PROFILE, "exposure": EXPOSURE_PROFILE, "raw": RAW_PROFILE}
    if purpose == "auto":
        return None
    if purpose not in named:
        message = f"rules are for one of auto, {', '.join(named)}"
        raise InvalidInput(message, rule="purpose", found=repr(purpose))
    return named[purpose]


# plan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanShown:
    """What two selectors come to, and the rules that our side would run."""

    id: ExchangePlanId
    transcript: str  # both sides compute the same
    fields: frozenset[str] | None  # that advertisements must carry; None: all
    rules: tuple[str, ...]  # of our side, the peer's atoms resolved in its view
    view: str  # what the peer's rules see: all, nothing, gated
    notices: tuple[Notice, ...]


def plan(
    select: Select = None,
    their_select: Select = None,
    *,
    expose: Expose = "none",
    viewer: Verifier | None = None,
    dialled: bool = True,
    send_gate: bool = True,
) -> PlanShown:
    """The exchange plan of our selector and a peer's, and what we run under it if we dialled, or were dialled."""
    from lace.policy.compile import agree
    from lace.policy.lower import LoweringOptions, lower
    from lace.policy.notice import exposure_notices

    ours, theirs = selector(select), selector(their_select)
    side = 0 if dialled else 1
    agreed = agree(*((ours, theirs) if dialled else (theirs, ours)))
    options = LoweringOptions(send_gate=send_gate)
    seen_by = Viewer(str(viewer or agreed.operands[1 - side].origin))
    policy = lower(agreed, local_index=side, viewer=seen_by, exposures=exposures(expose, ours), options=options)
    needs = agreed.requirements
    return PlanShown(
        id=agreed.id,
        transcript=agreed.transcript,
        fields=None if needs.all_fields else frozenset(needs.names),
        rules=tuple(rule.line for rule in policy.provenance.rules),
        view=str(policy.view),
        notices=pythonic(exposure_notices(policy, options)),
    )


# status


@dataclass(frozen=True, slots=True, eq=False)
class LaceStatus:
    """Whether a lace and its remotes hold the same, and what is open here."""

    remotes: tuple[RemoteStatus, ...]
    incomplete: tuple[Incomplete, ...]  # contents that lack parts
    conflicts: tuple[Row, ...]  # coordinates where several people have written

    @property
    def is_equal(self) -> bool:
        """Whether every remote is equal and no content lacks parts."""
        return all(one.is_equal for one in self.remotes) and not self.incomplete


def status(
    lace: Lace,
    *names: str,
    ask: bool = True,
    select: Select = None,
    expose: Expose | None = None,
    keys: KeyRing | None = None,
    deadline_s: float | None = None,
    interrupt: Interrupt | None = None,
) -> LaceStatus:
    """How a lace and its remotes compare: all of them, or those named; nothing moves.

    Without `ask` nobody is dialled, and what is told is how the last exchanges ended.
    After `deadline_s` seconds, or once `interrupt` returns True, it ends in `CallStopped`.
    """
    require_lace(lace)
    stop = until(deadline_s, interrupt)
    terms = terms_of(lace, select, expose, is_open=False)
    chosen = [find_remote(lace.store, name) for name in names] or remotes_of(lace.store)
    found = [known_status(lace, remote) for remote in chosen]
    if ask:
        found = [_ask(lace, known, terms, keys or KeyRing.of_user(), stop) for known in found]
    rows, doing = lace.list("//", tips=True), "a lace was compared with its remotes"
    incomplete = asking(lace.incomplete(), stop, doing)
    return LaceStatus(tuple(found), tuple(incomplete), tuple(conflicts(lace, asking(rows, stop, doing))))


def _ask(lace: Lace, known: RemoteStatus, terms: Terms, keys: KeyRing, stop: Interrupt) -> RemoteStatus:
    """Ask a remote; one that cannot be asked must not keep the others from being asked."""
    try:
        place = known.remote.place
        if isinstance(place, Path):
            return _ask_here(lace, known, place, terms, stop)
        return _dial(lace, known, terms, keys, place, stop)
    except CallStopped:
        raise
    except (LaceError, OSError) as error:
        return replace(known, was_asked=True, trouble=str(error))


def _dial(
    lace: Lace, known: RemoteStatus, terms: Terms, keys: KeyRing, place: Address, stop: Interrupt
) -> RemoteStatus:
    from lace.porcelain.preview import preview_hosts, preview_terms
    from lace.porcelain.visibility import held_back
    from lace.runtime.local.preview import Preview

    found = Preview()
    make_host = preview_hosts(lace.store, found)
    caller, asked = _caller(known.remote, keys), preview_terms(terms)
    outcome = caller.exchange(lace.store, str(place), asked, make_host=make_host, stop=stop)
    is_shown = found.sendable or found.asked_for
    peer = outcome.result.peer_verifier
    held = None if is_shown else held_back(lace.store, terms, peer, at=SystemClock().tai(), stop=stop)
    return asked_status(known, terms.module, outcome, found, held)


def _caller(remote: Remote, keys: KeyRing) -> Caller:
    key = keys.load(remote.key) if remote.key is not None else None
    return Caller(key=key, trusted=remote.trust, tls=ClientTls(pin=remote.pin, ca_file=remote.ca))


def _ask_here(lace: Lace, known: RemoteStatus, place: Path, terms: Terms, stop: Interrupt) -> RemoteStatus:
    from lace.porcelain.preview import preview_locally_with_outcome
    from lace.porcelain.visibility import held_back

    choices = (terms.module, tuple(terms.exposures))
    with open_lace(place) as other:
        parties = local_parties(lace, other, choices, choices, is_open=False)
        found, outcome = preview_locally_with_outcome(*parties, stop=stop)
        is_shown = found.sendable or found.asked_for
        held = None if is_shown else held_back(lace.store, terms, None, at=SystemClock().tai(), stop=stop)
        return asked_status(known, terms.module, outcome, found, held)
