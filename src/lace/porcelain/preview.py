"""What an exchange would move, and what a peer offers, without moving records: `lace.preview`, `lace.browse`.

Rule: a preview is a real exchange with the peer, under the same selection and exposure; `lace.runtime.local.preview`
explains why nothing moves in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from lace.errors import TransportError
from lace.facts import predicates as names
from lace.interlace.claims.advertisement import Advertisement
from lace.interlace.setup.terms import Terms
from lace.notation.decimal import natural
from lace.notation.identifiers import RecordHash, Verifier
from lace.notation.stopping import Interrupt, never, until
from lace.policy.select import telling
from lace.porcelain.exchange import Expose, Select, selector
from lace.porcelain.lace import Lace
from lace.porcelain.listing import Row
from lace.porcelain.misuse import require_lace
from lace.porcelain.network import Caller, terms_of
from lace.records.keys import Signer
from lace.records.link import LINK_SUFFIX
from lace.records.retraction import RETRACT
from lace.runtime.host.quotas import QuotaGate
from lace.runtime.link.session import Outcome
from lace.runtime.local.local import ExchangeAborted, LocalExchange
from lace.runtime.local.party import Party
from lace.runtime.local.preview import Preview, PreviewHost
from lace.store.base import RecordStore
from lace.store.memory import MemoryStore
from lace.transports.tls import ClientTls
from lace.values import dataclass

SHOWN = (names.TYPE, names.GROUP, names.APP, names.NAME, names.TAI, names.SIGNED_BY, names.DATA_LENGTH,
         RETRACT, RETRACT + LINK_SUFFIX)  # fmt: skip
MAX_OFFERED = 1_000_000


@dataclass(frozen=True, slots=True)
class Share:
    """How much of what would move belongs to one app of one group; both are empty for chunks and other Blobs."""

    group: str
    app: str
    records: int
    content_bytes: int


def shares(claims: Iterable[Advertisement]) -> list[Share]:
    """What would move by group and app, the largest first."""
    counted: dict[tuple[str, str], tuple[int, int]] = {}
    for row in rows(claims):
        place = row[names.GROUP], row[names.APP]
        records, size = counted.get(place, (0, 0))
        counted[place] = records + 1, size + content_bytes(row)
    found = [Share(*place, *amount) for place, amount in counted.items()]
    return sorted(found, key=lambda share: (-share.content_bytes, share.group, share.app))


def rows(claims: Iterable[Advertisement]) -> list[Row]:
    """Claims as rows of a listing; they are the peer's word, checked only when a record arrives."""
    return [Row(RecordHash(claim.hash), _values(claim)) for claim in claims]


def _values(claim: Advertisement) -> dict[str, tuple[str, ...]]:
    values: dict[str, tuple[str, ...]] = {}
    for name, _, value in claim.fields:
        values[name] = (*values.get(name, ()), value)
    return values


def content_bytes(row: Row) -> int:
    """The content length that a row claims; 0 if a peer wrote something that is not a number."""
    return natural(row[names.DATA_LENGTH]) or 0


def preview_terms(terms: Terms) -> Terms:
    """The terms with a plan whose listings have all the fields to show."""
    return replace(terms, module=telling(terms.module, SHOWN), is_open=False)


def preview(
    lace: Lace,
    address: str,
    *,
    select: Select = None,
    expose: Expose = "none",
    key: Signer | None = None,
    trusted: Sequence[Verifier] = (),
    tls: ClientTls | None = None,
    deadline_s: float | None = None,
    interrupt: Interrupt | None = None,
) -> Preview:
    """What an exchange with a peer would move now; nothing moves. Raises TransportError if it does not end well.

    `wanted` is what would come and `asked_for` what would go, as claims; `shares` adds them up.
    After `deadline_s` seconds, or once `interrupt` (asked every few milliseconds, by this thread) returns True, it ends
    in `CallStopped`.
    """
    require_lace(lace)
    found = Preview()
    caller = Caller(key=key, trusted=tuple(trusted), tls=tls)
    terms = terms_of(lace, select, expose, is_open=False)
    _run(lace.store, address, terms, found, caller, until(deadline_s, interrupt))
    return found


def browse(
    address: str,
    *,
    select: Select = None,
    key: Signer | None = None,
    trusted: Sequence[Verifier] = (),
    tls: ClientTls | None = None,
    max_records: int = MAX_OFFERED,
    deadline_s: float | None = None,
    interrupt: Interrupt | None = None,
) -> list[Row]:
    """What a peer offers us, by coordinate; nothing of ours is shown, and nothing is stored.

    After `deadline_s` seconds, or once `interrupt` (asked every few milliseconds, by this thread) returns True, it ends
    in `CallStopped`.
    """
    found = Preview(max_records=max_records)
    caller = Caller(key=key, trusted=tuple(trusted), tls=tls)
    _run(MemoryStore(), address, Terms(module=selector(select)), found, caller, until(deadline_s, interrupt))
    return in_order(rows(found.offered))


def in_order(offered: Iterable[Row]) -> list[Row]:
    """Sort by coordinate, oldest first, and put what has none at the end."""
    return sorted(offered, key=lambda row: (not row.coordinate, row.coordinate, row[names.TAI], row.hash))


def preview_locally(first: Party, second: Party) -> Preview:
    """What an exchange between two laces on this machine would move, seen from the first."""
    return preview_locally_with_outcome(first, second)[0]


def preview_locally_with_outcome(first: Party, second: Party, stop: Interrupt = never) -> tuple[Preview, Outcome]:
    """The same, and how the exchange in which nothing moved ended."""
    found = Preview()
    # Without keys, nothing about the peer's claims is kept for the next time: that would write to both stores.
    ours = replace(first, terms=preview_terms(first.terms), preview=found, cursor_key="")
    with LocalExchange(ours, replace(second, cursor_key=""), stop=stop) as running:
        running.start()
        running.run()
        for side in running.sides:
            if side.aborted is not None:
                raise ExchangeAborted(side.aborted.reason, side.aborted.detail, side.index, running.results())
        result = running.results()[0]
    are_empty = all(party.store.stat().records == 0 for party in (first, second))
    return found, Outcome(replace(result, both_hold_nothing=are_empty))


def _run(store: RecordStore, address: str, terms: Terms, found: Preview, caller: Caller, stop: Interrupt) -> None:
    hosts = preview_hosts(store, found)
    outcome = caller.exchange(store, address, preview_terms(terms), make_host=hosts, stop=stop)
    if outcome.abort:
        raise TransportError(f"{address}: {outcome.abort}: {outcome.detail}")


def preview_hosts(store: RecordStore, found: Preview) -> Callable[[Terms, QuotaGate], PreviewHost]:
    """Hosts for a node whose exchanges move nothing."""
    return lambda terms, _: PreviewHost(store, terms, found)
