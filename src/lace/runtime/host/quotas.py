"""How much peers may bring into a lace, and what they may not bring at all (docs/serving.md, quotas).

Rule: what an advertisement tells is judged before a record is requested, the rest before it is stored, in the
transaction that stores it. A record is refused by itself: it costs a peer neither its link nor its other records.
Accounts outlive links and nodes (`lace.store.ledger`); a peer is its proven key, else its network prefix.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from itertools import compress

from lace.errors import InvalidText, StoreFull
from lace.facts.predicates import DATA_LENGTH, GROUP, SIGNED_BY, TAI
from lace.intake.received import JudgedBatch
from lace.interlace.claims.advertisement import Advertisement
from lace.interlace.loop.refusals import HeldBack, Reason
from lace.limits import GIB, MIB, SECOND_NS, RecordLimits
from lace.notation import tai
from lace.notation.decimal import natural
from lace.notation.identifiers import RecordHash
from lace.people.receiving import Receiving
from lace.records.validate import reread
from lace.runtime.host.refusedbefore import RefusedBefore, RefusedRecord
from lace.store import ledger
from lace.store.base import RecordStore, StoreStat
from lace.store.columns.segments.encode import EncodedBatch, encode_batch
from lace.store.columns.segments.segment import NO_TEXT
from lace.store.forgotten import WHY, forgotten_among
from lace.store.ledger import Brought, Usage
from lace.values import dataclass

LEAST_RECORD_BYTES = 64  # of any record: what an advertisement does not tell is taken for this until it comes
SHORT_OF_ROOM = GIB  # below this the length of every record is asked for and counted before it is requested
_WIDEST = RecordLimits()
STRANGERS = "strangers"  # the account of all peers that nobody here knows

ClaimOf = Callable[[str], Advertisement | None]
Tell = Callable[[str, str], None]
"""Hears a word for what was short, and a sentence."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much an account may hold; None is unlimited."""

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


UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "records": 0}
_AMOUNT = re.compile(r"(?P<number>[0-9]{1,15}) *(?P<unit>[A-Za-z]+)")
FORM = f"a number and one of {', '.join(UNITS)}, such as 64MiB, or several of them separated by commas"


def parse_allowance(text: str) -> Allowance:
    """`64MiB`, `5000 records`, `64MiB, 5000 records`, or `none`."""
    found: dict[str, int] = {}
    for part in text.split(",") if text.strip() != "none" else ():
        match = _AMOUNT.fullmatch(part.strip())
        if match is None or match["unit"] not in UNITS:
            raise InvalidText(f"an amount is {FORM}", rule="quota", found=repr(text[:80]))
        name = "bytes" if UNITS[match["unit"]] else "records"
        if name in found:
            raise InvalidText(f"an amount may give {name} only once", rule="quota", found=repr(text[:80]))
        found[name] = int(match["number"]) * (UNITS[match["unit"]] or 1)
    return Allowance(**found)


def quotas_with(given: Iterable[tuple[str, str]]) -> Quotas | None:
    """The default quotas with the given ones in their place; None if none was given."""
    quotas, said = FOR_STRANGERS, False
    names = [one.name for one in fields(Quotas)]
    for name, text in given:
        if name not in names:
            raise InvalidText(f"a quota is one of {', '.join(names)}", rule="quota", found=repr(name[:80]))
        quotas, said = replace(quotas, **{name: parse_allowance(text)}), True
    return quotas if said else None


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
    limits: RecordLimits = _WIDEST  # what a record may measure here
    receiving: Receiving | None = None  # the receive rules of the lace's policy

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


@dataclass(frozen=True, slots=True)
class NotKept:
    """Why a record is not kept: a word for the peer, and a sentence."""

    reason: Reason
    why: str
    is_lasting: bool = True  # nothing but another limit here would change it


_FORGOTTEN = NotKept(Reason.POLICY, WHY, is_lasting=False)


@dataclass(frozen=True, slots=True)
class Committed:
    """What became of a batch: what is durable, and what is not kept, with why, and with the word for the peer."""

    stored: list[RecordHash]
    refused: dict[str, str]
    words: dict[str, Reason]


class _Reckoning:
    """The accounts of one moment and the room on the disk, and what is about to be added to them."""

    def __init__(self, store: RecordStore, rules: GateRules, room: int | None = None) -> None:
        self._store = store
        self._accounts = rules.accounts()
        self._kinds = rules.kinds()
        self._total = rules.quotas.total
        stat: StoreStat | None = store.stat() if self._total.is_limited else None
        self._all = Usage(stat.records, stat.stored_bytes) if stat is not None else Usage()
        self._used: dict[str, Usage] = {}
        self._room = room

    def refusal(self, record: Brought) -> NotKept | None:
        """Why a record is too much; if it is not, it is counted."""
        named = [(ledger.account(kind, said), self._kinds[kind]) for kind, said in self._said(record)]
        touched = [*self._accounts.items(), *named]
        for name, allowed in touched:
            if lack := allowed.lacks(self._usage(name), record.size):
                return NotKept(Reason.QUOTA, f"quota of {name}: {lack}")
        if lack := self._total.lacks(self._all, record.size):
            return NotKept(Reason.QUOTA, f"quota in total: {lack}")
        if self._room is not None:
            if record.size > self._room:
                lack = f"{self._room:,} bytes of records have room and this one has {record.size:,} or more"
                return NotKept(Reason.FULL, f"full disk: {lack}")
            self._room -= record.size
        for name, _ in touched:
            self._used[name] = self._used[name].plus(1, record.size)
        self._all = self._all.plus(1, record.size)
        return None

    def _said(self, record: Brought) -> Iterable[tuple[str, str]]:
        said = ((ledger.SIGNER, record.signer), (ledger.GROUP, record.group))
        return [(kind, name) for kind, name in said if name and kind in self._kinds]

    def _usage(self, name: str) -> Usage:
        if name not in self._used:
            self._used[name] = ledger.usage(self._store, name)
        return self._used[name]


class QuotaGate:
    """What one link's peer may bring into one store."""

    def __init__(
        self,
        store: RecordStore,
        rules: GateRules,
        tell: Tell = lambda kind, why: None,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._rules = rules
        self._tell = tell
        self._told: set[str] = set()  # what was said of this link already
        self._before = RefusedBefore(store, rules.peer, repr(rules.limits), now)
        self._held_back: dict[str, str] = {}

    @property
    def peer(self) -> str:
        """Whose link it is: a key or a network prefix; empty if unknown."""
        return self._rules.peer

    # --- before anything is requested --------------------------------------------------------------------------

    @property
    def held_back(self) -> HeldBack:
        """What was asked about last and would not be kept."""
        return HeldBack.of(self._held_back)

    def requestable(
        self, records: Collection[str], claim_of: ClaimOf, *, has_fields: bool, refused: Collection[str] = ()
    ) -> Collection[str]:
        """Without what was refused in this exchange, and what would be refused whatever room there is."""
        self._held_back = {}
        if refused:
            records = [record for record in records if record not in refused]
        if gone := forgotten_among(self._store, records):
            records = self._but(records, lambda record: Reason.POLICY if record in gone else "")
        if len(self._before):
            records = self._but(records, self._before.verdict)
        if self._rules.limits.max_data_bytes < _WIDEST.max_data_bytes and has_fields:
            records = self._but(records, lambda record: self._over_limits(claim_of(record)))
        if self._rules.horizon is None:
            return records
        return self._but_late(records, claim_of if has_fields else None, self._rules.horizon())

    def _but_late(self, records: Collection[str], claim_of: ClaimOf | None, latest: str) -> Collection[str]:
        if claim_of is None and not len(self._before):
            return records

        def late(record: str) -> str:
            before = self._before.get(record)
            date = before.tai if before is not None else ""
            if not date and claim_of is not None:
                date = _told(claim_of(record)).get(TAI, "")
            return Reason.HORIZON if date > latest else ""

        kept = self._but(records, late)
        if len(kept) < len(records):
            self._say("horizon", f"{len(records) - len(kept):,} records are dated beyond {latest} and not requested")
        return kept

    def _but(self, records: Collection[str], reason_of: Callable[[str], str]) -> Collection[str]:
        """Those that nothing speaks against; the others are held back."""
        reasons = {record: reason for record in records if (reason := reason_of(record))}
        self._held_back.update(reasons)
        return [record for record in records if record not in reasons] if reasons else records

    def _over_limits(self, claim: Advertisement | None) -> str:
        length = natural(_told(claim).get(DATA_LENGTH, "")) or 0
        return Reason.POLICY if length > self._rules.limits.max_data_bytes else ""

    def affordable(self, records: Collection[str], claim_of: ClaimOf) -> Collection[str]:
        """Those for which there is room, as far as their advertisements tell, and what came of them before."""
        if not records:
            return records
        room, before = self._store.room(), self._before
        is_short = room is not None and room < SHORT_OF_ROOM
        if not self._rules.counts and not is_short and not any(map(before.get, records if len(before) else ())):
            return records
        reckoning = _Reckoning(self._store, self._rules, room)
        kept: list[str] = []
        short: NotKept | None = None
        for record in sorted(records):
            known = before.get(record)
            why = reckoning.refusal(known.brought if known is not None else _as_told(_told(claim_of(record))))
            if why is None:
                kept.append(record)
                continue
            self._held_back[record] = why.reason
            short = short or why
        if short is not None:
            self._say(short.reason, f"{len(records) - len(kept):,} records are not requested; {short.why}")
        return kept

    # --- before anything is stored -----------------------------------------------------------------------------

    def commit(self, judged: JudgedBatch) -> Committed:
        """Store what may be stored, durable on return; what may not is refused with its reason."""
        bad = {
            name: NotKept(Reason.POLICY if name in judged.over_limits else Reason.INVALID, why)
            for name, why in judged.refused.items()
        }
        refused = self._commit_fitting(judged, [1 << 62]) if judged.stored else {}
        stored = [name for name in judged.stored if name not in refused]
        for one in refused.values():
            self._say(one.reason, f"a record is refused; {one.why}")
        left_out = bad | refused
        lasting = {name: one for name, one in left_out.items() if one.is_lasting}
        if left_out or len(self._before):
            rows = dict.fromkeys(bad, RefusedRecord("")) | (_rows(judged.batch) if refused else {})
            self._remember({name: rows[name]._replace(reason=one.reason) for name, one in lasting.items()}, stored)
        reasons = {name: one.reason for name, one in left_out.items()}
        return Committed(stored, {name: one.why for name, one in left_out.items()}, reasons)

    def _commit_fitting(self, judged: JudgedBatch, too_long: list[int]) -> dict[str, NotKept]:
        """Store as much as the disk has room for; what is refused. `too_long` is a size for which there was none."""
        sizes = list(map(len, judged.batch.bodies))
        try:
            if min(sizes) < too_long[0]:
                return self._commit(judged)
            full = "full disk: there was no room for a record of this length or less"
        except StoreFull as error:
            if len(judged.stored) > 1:
                half = len(judged.stored) // 2
                parts = (_only(judged, range(half)), _only(judged, range(half, len(judged.stored))))
                return {name: why for part in parts for name, why in self._commit_fitting(part, too_long).items()}
            too_long[0] = min(too_long[0], sizes[0])
            full = f"full disk: {error}"
        return {name: NotKept(Reason.FULL, full) for name in judged.stored}

    def _commit(self, judged: JudgedBatch) -> dict[str, NotKept]:
        with self._store.together():  # so that nobody forgets a record of it meanwhile
            if self._rules.counts:
                return self._commit_counted(judged)
            refused = self._unwanted(judged)
            _but_refused(judged, refused).commit(self._store)
            return refused

    def _commit_counted(self, judged: JudgedBatch) -> dict[str, NotKept]:
        records = brought(judged.batch)
        present = self._store.present(judged.stored)
        reckoning = _Reckoning(self._store, self._rules)
        refused = self._unwanted(judged)
        for name, record in zip(judged.stored, records, strict=True):
            if name not in present and name not in refused and (why := reckoning.refusal(record)) is not None:
                refused[name] = why
        before = self._store.high_water()
        _but_refused(judged, refused).commit(self._store)
        run = range(before + 1, self._store.high_water() + 1)
        new = [name not in present and name not in refused for name in judged.stored]
        accounts, kinds = list(self._rules.accounts()), list(self._rules.kinds())
        if run and (accounts or kinds):
            ledger.charge(self._store, run, compress(records, new), accounts, kinds)
        return refused

    def _unwanted(self, judged: JudgedBatch) -> dict[str, NotKept]:
        """Records that are not kept whatever room there is."""
        forgotten = dict.fromkeys(forgotten_among(self._store, judged.stored), _FORGOTTEN)
        return self._too_late(judged.batch) | self._not_received(judged.batch) | forgotten

    def _too_late(self, batch: EncodedBatch) -> dict[str, NotKept]:
        """Records that are dated beyond the horizon."""
        rows = batch.coordinates
        if self._rules.horizon is None or not len(rows.tais):
            return {}
        latest, texts = self._rules.horizon(), batch.texts
        if max(texts[code] for code in set(rows.tais)) <= latest:
            return {}
        return {
            name: NotKept(Reason.HORIZON, f"horizon: it is dated {row.tai}, later than {latest}")
            for name, row in _rows(batch).items()
            if row.tai > latest
        }

    def _not_received(self, batch: EncodedBatch) -> dict[str, NotKept]:
        """Records that the lace's policy does not take."""
        if self._rules.receiving is None:
            return {}
        refused = self._rules.receiving.refused(batch.bodies)
        return {name: NotKept(Reason.POLICY, why, is_lasting=False) for name, why in refused.items()}

    def _remember(self, refused: Mapping[str, RefusedRecord], stored: Sequence[str]) -> None:
        """So that they are not asked for again while nothing has changed."""
        self._before.note(refused, stored)

    def _say(self, kind: str, why: str) -> None:
        """Once for each kind on a link: a peer that goes on is not given more lines in our log."""
        if kind not in self._told:
            self._told.add(kind)
            self._tell(str(kind), why)


def wants_lengths(store: RecordStore, rules: GateRules) -> bool:
    """Whether a record's length may decide whether it is kept (071-LEN-01)."""
    room = store.room()
    is_short = room is not None and room < SHORT_OF_ROOM
    return rules.counts or is_short or rules.limits.max_data_bytes < _WIDEST.max_data_bytes


def _only(judged: JudgedBatch, places: Iterable[int]) -> JudgedBatch:
    """Some of what passed, of which nothing was refused."""
    chosen = list(places)
    bodies = [judged.batch.bodies[place] for place in chosen]
    batch = encode_batch(map(reread, bodies))
    return replace(judged, stored=[judged.stored[place] for place in chosen], refused={}, batch=batch)


def _but_refused(judged: JudgedBatch, refused: Mapping[str, NotKept]) -> JudgedBatch:
    if not refused:
        return judged
    return _only(judged, [place for place, name in enumerate(judged.stored) if name not in refused])


def _rows(batch: EncodedBatch) -> dict[str, RefusedRecord]:
    """What is remembered of the records of a batch, if they are refused."""
    rows, texts = batch.coordinates, batch.texts
    dates = {ordinal: texts[code] for ordinal, code in zip(rows.ordinals, rows.tais, strict=True)}
    return {
        str(name): RefusedRecord("", *record, dates.get(ordinal, ""))
        for ordinal, (name, record) in enumerate(zip(batch.hashes, brought(batch), strict=True))
    }


def brought(batch: EncodedBatch) -> list[Brought]:
    """What the ledger has to know of each record of a batch."""
    rows, texts = batch.coordinates, batch.texts
    said = {
        ordinal: (texts[group], "" if signer == NO_TEXT else texts[signer])
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
