"""Whether a lace and its remotes hold the same: what is missing each way and why, what was refused, what is incomplete.

Rule: equal means that a peer was asked and that neither side would ask the other for anything, that nothing was refused
or held back, and that some side showed something, or both hold nothing. Where a policy says what members show each
other, a peer that shows nothing is not equal: it may not count us as a member. What is known from last time is never
called equal while records have been stored here since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import islice

from lace.interlace.claims.advertisement import Advertisement
from lace.people.root import pinned_root
from lace.people.standing import PEOPLE_APPS
from lace.policy.operand import Module
from lace.porcelain.lace import Lace
from lace.porcelain.listing import Row
from lace.porcelain.preview import rows
from lace.porcelain.remotes import LastExchange, Remote, last_exchange
from lace.porcelain.visibility import NotExposed
from lace.runtime.link.session import Outcome
from lace.runtime.local.preview import Preview
from lace.store.base import StoreRecordId
from lace.values import dataclass

MOST_CONFLICTS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A record that one side lacks and its rules want."""

    hash: str
    coordinate: str
    why: str

    def to_json(self) -> dict[str, str | None]:
        """Under names for programs."""
        return {"hash": self.hash, "coordinate": self.coordinate or None, "why": self.why}


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteStatus:
    """How a lace and one remote compare."""

    remote: Remote
    last: LastExchange | None
    stored_since: int = 0  # records that were stored here after the last exchange
    goes_by_policy: bool = False  # whether the lace carries a policy, which others in its group go by, too
    was_asked: bool = False  # the rest is known only if it was
    trouble: str = ""  # why it could not be asked
    missing_here: tuple[Missing, ...] = ()
    missing_there: tuple[Missing, ...] = ()
    not_shown: int = 0  # records that our rules select and our exposure shows none of
    has_other_rules: bool = False  # the peer brought other rules than ours, which need not be wrong
    nothing_shown: bool = False  # neither side showed the other anything, and there is something
    is_kept_out: bool = False  # the peer showed and asked for nothing, although a policy says what members are shown
    held_back_here: Mapping[str, int] = field(default_factory=dict)
    held_back_there: Mapping[str, int] = field(default_factory=dict)

    @property
    def refused_here(self) -> Mapping[str, str]:
        """What came in the last exchange and was not kept, with the reason."""
        return self.last.refused_here if self.last else {}

    @property
    def refused_there(self) -> Mapping[str, str]:
        """What the peer did not keep in the last exchange, or did not ask for, with its reasons."""
        return self.last.refused_there if self.last else {}

    @property
    def is_equal(self) -> bool:
        """Whether both sides hold all that both rules select, as far as this was looked at."""
        if not self.was_asked:
            return not self.trouble and self.last is not None and self.last.is_equal and not self.stored_since
        if self.trouble or self.not_shown or self.nothing_shown or self.is_kept_out:
            return False
        return not (self.missing_here or self.missing_there or self.held_back_here or self.held_back_there)

    def to_json(self) -> dict[str, object]:
        """Under names for programs."""
        return {
            "remote": self.remote.name,
            "address": self.remote.address,
            "asked": self.was_asked,
            "equal": self.is_equal,
            "trouble": self.trouble or None,
            "missing_here": [one.to_json() for one in self.missing_here],
            "missing_there": [one.to_json() for one in self.missing_there],
            "not_shown": self.not_shown,
            "nothing_shown": self.nothing_shown,
            "kept_out": self.is_kept_out,
            "has_other_rules": self.has_other_rules,
            "held_back_here": dict(self.held_back_here),
            "held_back_there": dict(self.held_back_there),
            "refused_here": dict(self.refused_here),
            "refused_there": dict(self.refused_there),
            "stored_since": self.stored_since,
            "last": None if self.last is None else self.last.to_json(),
        }


def known_status(lace: Lace, remote: Remote) -> RemoteStatus:
    """What is known of a remote without asking it."""
    last = last_exchange(lace.store, remote.name)
    since = 0
    if last is not None:
        after = StoreRecordId(last.store_record_id)
        since = sum(1 for _ in lace.store.records_since(after))
    return RemoteStatus(remote=remote, last=last, stored_since=since, goes_by_policy=goes_by_policy(lace))


def goes_by_policy(lace: Lace) -> bool:
    """Whether a lace carries a policy that is in force."""
    policy = lace.policy()
    return policy is not None and not policy.is_waiting


def is_kept_out(outcome: Outcome) -> bool:
    """Whether a peer, who goes by the policy that we go by, showed nothing of all that we showed to it."""
    result = outcome.result
    return outcome.is_complete and bool(result.advertised_to_peer) and not result.advertised_by_peer


def asked_status(
    known: RemoteStatus, ours: Module, outcome: Outcome, preview: Preview, held: NotExposed | None
) -> RemoteStatus:
    """What is known of a remote after it was asked, under our rules, in an exchange in which nothing moved."""
    result = outcome.result
    shown = result.advertised_to_peer or result.advertised_by_peer or result.both_hold_nothing
    refused = known.refused_there
    return RemoteStatus(
        remote=known.remote,
        last=known.last,
        stored_since=known.stored_since,
        goes_by_policy=known.goes_by_policy,
        was_asked=True,
        trouble="" if outcome.is_complete else ": ".join(filter(None, (outcome.status, outcome.detail))),
        missing_here=tuple(_missing(preview.wanted, known.refused_here, "it was not fetched yet")),
        missing_there=tuple(_missing(preview.asked_for.values(), refused, "it was not sent yet")),
        not_shown=0 if held is None else held.records,
        has_other_rules=preview.their_module is not None and preview.their_module.id != ours.id,
        nothing_shown=not shown and held is None,
        is_kept_out=known.goes_by_policy and not preview.asked_for and is_kept_out(outcome),
        held_back_here=dict(result.held_back),
        held_back_there=dict(result.held_back_by_peer.counts),
    )


def _missing(claims: Iterable[Advertisement], refused: Mapping[str, str], otherwise: str) -> Iterator[Missing]:
    for row in rows(claims):
        why = f"refused: {refused[row.hash]}" if row.hash in refused else otherwise
        yield Missing(hash=row.hash, coordinate=row.coordinate, why=why)


def conflicts(lace: Lace, tips: Iterable[Row], most: int = MOST_CONFLICTS) -> list[Row]:
    """The tips of coordinates where several people have written: the newest by time holds, the others are beside it.

    Who is a member and what the policy is, several people say by design; rules decide there.
    """
    root = pinned_root(lace.store)
    ruled = set() if root is None else {(root.group, app) for app in PEOPLE_APPS}
    return list(islice((row for row in tips if row.concurrent and (row["Group"], row["App"]) not in ruled), most))
