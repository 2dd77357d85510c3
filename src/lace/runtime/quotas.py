"""How much peers may bring into a lace, and what they may not bring at all (docs/serving.md, quotas).

Rule: what an advertisement tells is judged before a record is requested, the rest before it is stored, in the
transaction that stores it. A record is refused by itself: it costs a peer neither its link nor its other records.
Accounts outlive links and nodes (`lace.store.ledger`); a peer is its proven key, else its network prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field, replace
from itertools import compress

from lace.facts.predicates import DATA_LENGTH, GROUP, SIGNED_BY, TAI
from lace.intake.received import JudgedBatch
from lace.interlace.advertisement import Advertisement
from lace.limits import GIB, MIB, SECOND_NS
from lace.notation import tai
from lace.notation.decimal import natural
from lace.records.validate import reread
from lace.store import ledger
from lace.store.base import RecordStore, StoreStat
from lace.store.columns.encode import EncodedBatch, encode_batch
from lace.store.columns.segments import NO_SIGNER
from lace.store.ledger import Brought, Usage
from lace.values import dataclass

LEAST_RECORD_BYTES = 64  # of any record: what an advertisement does not tell is taken for this until it comes
MAX_TURNED_AWAY = 100_000  # records that one link remembers not to ask for again
STRANGERS = "strangers"  # the account of all peers that nobody here knows

ClaimOf = Callable[[str], Advertisement | None]
Tell = Callable[[str, str], None]
"""Hears a word for what was short, and a sentence."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much may stand on an account; None is no limit."""

    bytes: int | None = None
    records: int | None = None

    @property
    def is_limited(self) -> bool:
        """Whether there is anything to keep an account for."""
        return self.bytes is not None or self.records is not None

    def lacks(self, used: Usage, size: int) -> str:
        """What is missing for one more record of this size; empty if nothing is."""
        if self.records is not None and used.records >= self.records:
            return f"{used.records:,} of {self.records:,} records are used"
        if self.bytes is not None and used.bytes + size > self.bytes:
            return f"{used.bytes:,} of {self.bytes:,} bytes are used and this record has {size:,} or more"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """What may be brought: by one peer, by all that we do not know, of one signer, into one group, and in all.

    A peer is known if we dialled it, trust it by name, or it is on this machine by a socket or a pipe.
    """

    peer: Allowance = Allowance()  # what one unknown peer brings
    strangers: Allowance = Allowance()  # what all unknown peers bring together
    known_peer: Allowance = Allowance()  # what one known peer brings
    signer: Allowance = Allowance()  # what comes under one signature
    group: Allowance = Allowance()  # what comes into one group
    total: Allowance = Allowance()  # all records of the lace, our own included


FOR_STRANGERS = Quotas(peer=Allowance(bytes=256 * MIB, records=1 << 18), strangers=Allowance(bytes=2 * GIB))
"""Where the owner said nothing, for peers nobody knows on addresses that others can reach."""


def quotas_for(given: Quotas | None, *, is_known: bool, is_here: bool) -> Quotas:
    """What the owner said, else what holds for such a peer."""
    if given is not None:
        return given
    return Quotas() if is_known or is_here else FOR_STRANGERS


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRules:
    """What one link is held to."""

    quotas: Quotas = field(default_factory=Quotas)
    is_known: bool = True
    peer: str = ""  # the key or the network prefix
    horizon: Callable[[], str] | None = None  # records dated later are refused; None takes them all

    def accounts(self) -> dict[str, Allowance]:
        """The accounts of this peer, by name, that are limited."""
        quotas = self.quotas
        mine = quotas.known_peer if self.is_known else quotas.peer
        found = {ledger.account("peer", self.peer): mine}
        if not self.is_known:
            found[STRANGERS] = quotas.strangers
        return {name: allowed for name, allowed in found.items() if allowed.is_limited}

    def kinds(self) -> dict[str, Allowance]:
        """The limited accounts that records name by themselves."""
        found = {ledger.SIGNER: self.quotas.signer, ledger.GROUP: self.quotas.group}
        return {kind: allowed for kind, allowed in found.items() if allowed.is_limited}

    @property
    def counts(self) -> bool:
        """Whether anything is limited by amount."""
        return bool(self.accounts() or self.kinds()) or self.quotas.total.is_limited


class _Reckoning:
    """The accounts of one moment, and what is about to be added to them."""

    def __init__(self, store: RecordStore, rules: GateRules) -> None:
        self._store = store
        self._accounts = rules.accounts()
        self._kinds = rules.kinds()
        self._total = rules.quotas.total
        stat: StoreStat | None = store.stat() if self._total.is_limited else None
        self._all = Usage(stat.records, stat.stored_bytes) if stat is not None else Usage()
        self._used: dict[str, Usage] = {}

    def refusal(self, record: Brought) -> str:
        """Why a record is too much; if it is not, it is counted."""
        named = [(ledger.account(kind, said), self._kinds[kind]) for kind, said in self._said(record)]
        touched = [*self._accounts.items(), *named]
        for name, allowed in touched:
            if lack := allowed.lacks(self._usage(name), record.size):
                return f"quota of {name}: {lack}"
        if lack := self._total.lacks(self._all, record.size):
            return f"quota in total: {lack}"
        for name, _ in touched:
            self._used[name] = self._used[name].plus(1, record.size)
        self._all = self._all.plus(1, record.size)
        return ""

    def _said(self, record: Brought) -> Iterable[tuple[str, str]]:
        said = ((ledger.SIGNER, record.signer), (ledger.GROUP, record.group))
        return [(kind, name) for kind, name in said if name and kind in self._kinds]

    def _usage(self, name: str) -> Usage:
        if name not in self._used:
            self._used[name] = ledger.usage(self._store, name)
        return self._used[name]


class QuotaGate:
    """What one link's peer may bring into one store."""

    def __init__(self, store: RecordStore, rules: GateRules, tell: Tell = lambda kind, why: None) -> None:
        self._store = store
        self._rules = rules
        self._tell = tell
        self._told: set[str] = set()  # what was said of this link already
        self._turned_away: dict[str, None] = {}

    @property
    def peer(self) -> str:
        """Whose link it is: a key, or a network prefix; empty where that is not told."""
        return self._rules.peer

    # --- before anything is requested --------------------------------------------------------------------------

    def requestable(self, records: Collection[str], claim_of: ClaimOf, *, has_fields: bool) -> Collection[str]:
        """Without what was turned away before, and what is told to be dated too late."""
        if self._turned_away:
            records = [record for record in records if record not in self._turned_away]
        if self._rules.horizon is None or not has_fields:
            return records
        latest = self._rules.horizon()
        kept = [record for record in records if _told(claim_of(record)).get(TAI, "") <= latest]
        if len(kept) < len(records):
            self._say("horizon", f"{len(records) - len(kept):,} records are dated beyond {latest} and not requested")
        return kept

    def affordable(self, records: Sequence[str], claim_of: ClaimOf) -> Sequence[str]:
        """Those for which there is room, as far as their advertisements tell."""
        if not records or not self._rules.counts:
            return records
        reckoning = _Reckoning(self._store, self._rules)
        kept: list[str] = []
        short = ""
        for record in records:
            why = reckoning.refusal(_as_told(_told(claim_of(record))))
            if why:
                short = short or why
            else:
                kept.append(record)
        if short:
            self._say("quota", f"{len(records) - len(kept):,} records are not requested; {short}")
        return kept

    # --- before anything is stored -----------------------------------------------------------------------------

    def commit(self, judged: JudgedBatch) -> JudgedBatch:
        """Store what may be stored, durable on return; what may not is refused with its reason."""
        if not judged.stored:
            return judged
        if not self._rules.counts:
            passed = self._without(judged, self._too_late(judged.batch))
            passed.commit(self._store)
            return passed
        with self._store.together():
            return self._commit_counted(judged)

    def _commit_counted(self, judged: JudgedBatch) -> JudgedBatch:
        records = brought(judged.batch)
        present = self._store.present(judged.stored)
        reckoning = _Reckoning(self._store, self._rules)
        refused = self._too_late(judged.batch)
        for name, record in zip(judged.stored, records, strict=True):
            if name not in present and name not in refused and (why := reckoning.refusal(record)):
                refused[name] = why
        passed = self._without(judged, refused)
        before = self._store.high_water()
        passed.commit(self._store)
        run = range(before + 1, self._store.high_water() + 1)
        new = [name not in present and name not in refused for name in judged.stored]
        accounts, kinds = list(self._rules.accounts()), list(self._rules.kinds())
        if run and (accounts or kinds):
            ledger.charge(self._store, run, compress(records, new), accounts, kinds)
        return passed

    def _too_late(self, batch: EncodedBatch) -> dict[str, str]:
        """Records that are dated beyond the horizon."""
        rows = batch.coordinates
        if self._rules.horizon is None or not len(rows.tais):
            return {}
        latest, texts = self._rules.horizon(), batch.texts
        if max(texts[code] for code in set(rows.tais)) <= latest:
            return {}
        subjects = batch.segment.subjects
        late = [(ordinal, texts[tai]) for ordinal, tai in zip(rows.ordinals, rows.tais, strict=True)]
        return {
            texts[subjects[ordinal]]: f"horizon: it is dated {tai}, later than {latest}"
            for ordinal, tai in late
            if tai > latest
        }

    def _without(self, judged: JudgedBatch, refused: dict[str, str]) -> JudgedBatch:
        if not refused:
            return judged
        for name, why in refused.items():
            self._say(why.partition(" ")[0].rstrip(":"), f"a record is refused; {why}")
            self._turn_away(name)
        bodies = zip(judged.stored, judged.batch.bodies, strict=True)
        kept = [body for name, body in bodies if name not in refused]
        return replace(
            judged,
            stored=[name for name in judged.stored if name not in refused],
            refused={**judged.refused, **refused},
            batch=encode_batch(map(reread, kept)),
        )

    def _turn_away(self, record: str) -> None:
        self._turned_away[record] = None
        if len(self._turned_away) > MAX_TURNED_AWAY:
            del self._turned_away[next(iter(self._turned_away))]

    def _say(self, kind: str, why: str) -> None:
        """Once for each kind on a link: a peer that goes on is not given more lines in our log."""
        if kind not in self._told:
            self._told.add(kind)
            self._tell(kind, why)


def brought(batch: EncodedBatch) -> list[Brought]:
    """What the ledger has to know of each record of a batch."""
    rows, texts = batch.coordinates, batch.texts
    said = {
        ordinal: (texts[group], "" if signer == NO_SIGNER else texts[signer])
        for ordinal, group, signer in zip(rows.ordinals, rows.groups, rows.signers, strict=True)
    }
    return [Brought(len(body), *said.get(ordinal, ("", ""))) for ordinal, body in enumerate(batch.bodies)]


def horizon_after(now: Callable[[], tai.TAI], seconds: float) -> Callable[[], str]:
    """The latest date that is taken: texts of instants compare as the instants do."""
    return lambda: now().plus_ns(int(seconds * SECOND_NS))


def _told(claim: Advertisement | None) -> dict[str, str]:
    return {field.name: field.value for field in claim.fields} if claim is not None else {}


def _as_told(fields: dict[str, str]) -> Brought:
    size = max(LEAST_RECORD_BYTES, natural(fields.get(DATA_LENGTH, "")) or 0)
    return Brought(size, fields.get(GROUP, ""), fields.get(SIGNED_BY, ""))
