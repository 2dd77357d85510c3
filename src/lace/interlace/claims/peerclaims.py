"""The peer's claims as a host holds them (050, P16).

Rule: what a peer lists is checked against its summaries before it is used; what it need not list (`recognition`) is
held as the very parts of our own set: a million claims that are ours too take neither memory nor time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from lace.differences.ids import joined
from lace.differences.keyed import U64, DifferenceKey
from lace.interlace.claims.advertisement import Advertisement, Claims, bare_claims
from lace.interlace.claims.columns import apart, column_parts, pack_columns
from lace.interlace.claims.cursor import AdvertisementCursor
from lace.interlace.claims.partclaims import Part
from lace.interlace.claims.partitions import START_LENGTH, AdvertisementSet, ClaimChanges, Partition, summarise
from lace.interlace.claims.recognition import OwnListing, Recognition, WorkOut
from lace.interlace.claims.relative import OwnSet, RelativeClaims, adds_up, as_theirs, holds, measure_of
from lace.interlace.effects import Reconcile, TakeChange, TakeClaims
from lace.interlace.host import Call, ListingMismatch
from lace.interlace.inputs import ClaimsTaken, DifferenceTaken, Lacking, Reconciled
from lace.thresholds import ClaimThresholds

_DEFAULT = ClaimThresholds()


class PeerClaims:
    """What one peer claims under one label."""

    def __init__(
        self,
        source: str,
        max_line_bytes: int,
        work_out: WorkOut = summarise,
        thresholds: ClaimThresholds = _DEFAULT,
    ) -> None:
        self.source = source
        self._max_line_bytes = max_line_bytes
        self._work_out = work_out
        self._thresholds = thresholds
        self._pack = partial(pack_columns, thresholds=thresholds)
        self._held = AdvertisementSet(max_line_bytes)
        self._relative: RelativeClaims | None = None  # 070: what is held instead
        self._measured: U64 | None = None  # what the peer claims now, as it told itself
        self._seen: Mapping[str, Part] = {}  # the claims as the evaluator was last given them
        self._unknown: set[str] = set()  # claimed, but by which fields stood in facts of ours that are gone

    def __len__(self) -> int:
        return len(self._held) if self._relative is None else len(self._relative)

    def among(self, records: Iterable[str]) -> list[str]:
        """Those of some records that the peer claims to have."""
        return self._held.among(records) if self._relative is None else self._relative.among(records)

    def about(self, record: str) -> Advertisement | None:
        """The claim about a record that is not ours, if there is one."""
        return self._held.get(record) if self._relative is None else self._relative.foreign.get(record)

    @property
    def is_relative(self) -> bool:
        """Whether they are known as ours but for what differs."""
        return self._relative is not None

    @property
    def are_known(self) -> bool:
        """Whether they are those of a full listing. If not the peer has to be asked: what it claims about a record
        that we held was read off our own facts (P35), and we removed the record before we did."""
        return not self._unknown

    @property
    def is_measured(self) -> bool:
        """Whether it is known what they sum up to (070)."""
        return self._measured is not None

    def has_beyond(self, own: OwnSet, most: int) -> bool:
        """Whether any of them is about a record that is not in this set of ours, or that takes longer to say."""
        if self._relative is None or len(self._relative.foreign) > most:
            return True
        foreign = list(self._relative.foreign)
        return bool(foreign) and len(own.among(foreign)) < len(foreign)

    def beyond(self, own: OwnSet) -> list[Advertisement]:
        """The claims about records that are not in our set."""
        if self._relative is not None:
            return list(self._relative.foreign.values())
        if (spelled := own.spelled_out) is not None:
            return self._held.beyond(spelled)
        listing = self._held.listing()
        if not len(own):
            return listing
        ours = set(own.among([claim.hash for claim in listing]))
        return [claim for claim in listing if claim.hash not in ours]

    def is_left_by(self, own: OwnSet) -> bool:
        """Whether the peer claims records that are not in this set of ours and were in the one before: what it claims
        about them has to be read from the store."""
        moved = self._relative.moved(own) if self._relative is not None else None
        return self._relative is not None and (moved is None or bool(moved.left))

    def follow(self, own: OwnSet, *, keeps_fields: bool) -> None:
        """Our set is another one now."""
        relative = self._relative
        if relative is None:
            return
        moved = relative.moved(own)
        if moved is None:
            self._spell_out()
            return
        before, left = relative.own, moved.left
        relative.follow(
            own, moved, self._as_theirs(before, before.some(left)) if left and keeps_fields else bare_claims(left)
        )
        self._unknown.difference_update(moved.came)

    def _as_theirs(self, own: OwnSet, claims: Claims) -> list[Advertisement]:
        """Our claims as the peer makes them; notes which of them are unknown by now."""
        if own.gone:
            self._unknown.update(claim.hash for claim in claims if claim.hash in own.gone)
        return as_theirs(claims, self.source, self._max_line_bytes)

    def _spell_out(self) -> None:
        """Hold every claim as an object: the caller needs them one by one."""
        relative, self._relative = self._relative, None
        if relative is not None:
            self._held.replace_all([*self._as_theirs(relative.own, relative.shared()), *relative.foreign.values()])

    def forget(self) -> None:
        """Know of no claim: the peer says again what it has."""
        self._unknown.clear()
        self._relative = self._measured = None
        self._held.replace_all(())

    def listing(self) -> list[Advertisement]:
        """All claims, sorted."""
        self._spell_out()
        return self._held.listing()

    def fingerprint(self) -> bytes:
        """A digest that equal claims share."""
        self._spell_out()
        return self._held.fingerprint(self.source)

    def take_changes(self) -> ClaimChanges:
        """What changed since this was last asked, removals first: for an evaluator that follows the claims."""
        self._spell_out()
        changes, self._seen = self._held.changes_since(self._seen), self._held.parts()
        return changes

    def begin_anew(self) -> None:
        """Nobody has evaluated over these claims yet."""
        self._spell_out()
        self._measured, self._seen = None, {}

    def restore(self, cursor: AdvertisementCursor) -> None:
        """Begin with what was kept (050-SEND-02)."""
        self._held = AdvertisementSet(self._max_line_bytes, column_parts(cursor.bare))
        self._held.put_all(cursor.claims)
        self._held.remember(self.source, cursor.partitions)

    def as_cursor(self, plan: str) -> AdvertisementCursor:
        """What to keep until the next exchange."""
        self._spell_out()
        known = tuple(self._held.known_summaries(self.source))
        columns, others = apart(self._held.parts())
        return AdvertisementCursor(
            plan=plan, source=self.source, claims=tuple(others), partitions=known, bare=joined(columns)
        )

    # --- what the peer says ------------------------------------------------------------------------------------

    def take(self, wanted: TakeClaims, own: OwnSet | None = None) -> ClaimsTaken:
        """A listing, which replaces what was held (050-RECON-04), or the sum of its changes.

        Where sets are compared, `own` is ours: if nothing is in it and nothing held, a listing is what differs.
        """
        if own is not None and not len(own) and wanted.is_whole and wanted.added and not len(self):
            self._relative, self._measured = RelativeClaims(own, (), wanted.added), None
            self._unknown.clear()
            lacking = Lacking((), sorted(self._relative.foreign)) if len(self) <= wanted.max_named else None
            return ClaimsTaken(len(self), changed=True, lacking=lacking)
        self._spell_out()
        self._measured = None
        before = self._held.version
        if wanted.is_whole:
            self._held.replace_all(wanted.added)
            self._unknown.clear()
        else:
            self._held.drop_all(wanted.removed)
            self._held.put_all(wanted.added)
        answer = ClaimsTaken(len(self._held), changed=self._held.version != before)
        return answer if own is None else self._likened(answer, own, wanted)

    def _likened(self, answer: ClaimsTaken, own: OwnSet, wanted: TakeClaims) -> ClaimsTaken:
        """Whether what is held is about our records, or what differs if that is little enough."""
        max_named = wanted.max_named
        if abs(len(own) - len(self._held)) > max_named:  # so many differ at least; nothing has to be compared
            return answer
        both = set(own.among(list(self._held)))
        absent, foreign = len(own) - len(both), len(self._held) - len(both)
        if not absent and not foreign:
            return replace(answer, is_own=holds(own, wanted.crossed))
        if max(absent, foreign) > max_named:
            return answer
        listed = [claim.hash for claim in own.listing()] if absent else []
        lacking = Lacking([record for record in listed if record not in both], sorted(set(self._held).difference(both)))
        return replace(answer, lacking=lacking)

    def reconcile(self, wanted: Reconcile, own: OwnListing, call: Call) -> Reconciled:
        """Take over every partition that can be named; `own` is the set of the handle."""
        self._spell_out()
        self._measured = None
        self._unknown.clear()  # every partition of the peer is compared with what is held, fields and all
        before = self._held.version
        if wanted.listed or wanted.claims:
            self._take_listed(wanted.listed, wanted.claims)
        self._forget_absent(wanted)
        if wanted.parents is None and isinstance(own, AdvertisementSet):
            self._held.share(own, self.source)
        recognition = Recognition(self._held, own, self.source, self._max_line_bytes, call, self._thresholds)
        recognition.know_roots(wanted, self._work_out)
        unknown: dict[Partition, int] = {}
        named: dict[Partition, Sequence[Advertisement]] = {}
        for partition in wanted.offered:
            if recognition.is_held(partition):
                continue
            claims = recognition.name(partition)
            if claims is None:
                unknown[partition] = recognition.known_count(partition)
            else:
                named[partition] = claims
        self._take_over(named)
        return Reconciled(unknown=unknown, count=len(self._held), changed=self._held.version != before)

    def take_difference(
        self, own: OwnSet, absent: Sequence[str], claims: Claims, told: U64, ours: U64, key: DifferenceKey
    ) -> DifferenceTaken:
        """Ours without what the peer lacks, with what it lists, if that adds up; `ours` is the measure of our set."""
        listed = [claim.hash for claim in claims]
        if not adds_up(ours, absent, listed, told, key) or own.among(listed):  # P35: nothing about records of ours
            return DifferenceTaken(agrees=False)
        before, self._relative = self._relative, RelativeClaims(own, absent, claims)
        changed = before is None or before.absent != self._relative.absent or before.foreign != self._relative.foreign
        self._measured = told
        self._unknown.clear()
        return DifferenceTaken(agrees=True, absent=absent, count=len(self), changed=changed)

    def take_change(self, wanted: TakeChange, own: OwnSet, key: DifferenceKey) -> DifferenceTaken:
        """What changed since the claims were last taken over, if that adds up (070-BASE-02)."""
        listed, going = [claim.hash for claim in wanted.added], list(wanted.removed)
        if len(self.among(going)) != len(going) or self.among(listed) or not set(going).isdisjoint(listed):
            return DifferenceTaken(agrees=False)
        if not self._unknown.issubset(going):  # P34: a change to claims that we do not know does not tell them
            return DifferenceTaken(agrees=False)
        start = self._measure(key)
        known = {*self.among(wanted.sent), *listed}
        sent = [record for record in own.among(wanted.sent) if record not in known]
        # The peer may or may not have stored what we sent it before it made this measure: either is a true account.
        for also in (sent, []) if sent else ([],):
            if start is not None and adds_up(start, going, [*listed, *also], wanted.told, key):
                self._unknown.difference_update(going)
                self._change(wanted.added, going, self._as_theirs(own, own.some(also)) if also else [])
                self._measured = wanted.told
                changed = bool(listed or going or also)
                return DifferenceTaken(agrees=True, count=len(self), changed=changed)
        return DifferenceTaken(agrees=False)

    def _measure(self, key: DifferenceKey) -> U64 | None:
        if self._measured is None:
            relative = self._relative
            self._measured = measure_of(self._held, key) if relative is None else relative.measure(key)
        return self._measured

    def _change(self, added: Claims, removed: Sequence[str], sent: Claims) -> None:
        """Take over a change that was checked; `sent` is what the peer claims about records that it has from us."""
        relative = self._relative
        if relative is None:
            self._held.drop_all(removed)
            self._held.put_all([*added, *sent])
            return
        for record in removed:
            if relative.foreign.pop(record, None) is None:
                relative.absent.add(record)
        for claim in (*added, *sent):
            if claim.hash in relative.absent:
                relative.absent.discard(claim.hash)
            else:
                relative.foreign[claim.hash] = claim

    def _take_listed(self, promised: Sequence[Partition], claims: Claims) -> None:
        parts = _sort_out(promised, claims)
        found = {partition.prefix: partition for partition in self._work_out(parts, self.source, self._max_line_bytes)}
        for partition in promised:
            if found[partition.prefix] != partition:  # a peer that lists other than it summarised is refused whole
                raise ListingMismatch(f"partition {partition.prefix} is not what its summary says", "050-PART-15")
        self._take_over({partition: parts[partition.prefix] for partition in promised})

    def _forget_absent(self, wanted: Reconcile) -> None:
        """What is summarised is all there is: an absent prefix has count 0 (050-LIST-09)."""
        present = {partition.prefix for partition in wanted.offered}
        if wanted.parents is None:
            gone = [prefix for prefix in self._held.prefixes() if prefix not in present]
        else:
            gone = [child for parent in wanted.parents for child in self._held.family(parent) if child not in present]
        self._held.replace_under(dict.fromkeys(gone, ()))

    def _take_over(self, named: Mapping[Partition, Sequence[Advertisement]]) -> None:
        """Hold the claims of some partitions; they were checked against their roots, which need not be worked out
        again."""
        self._held.replace_under({partition.prefix: claims for partition, claims in named.items()}, self._pack)
        self._held.remember(self.source, named)


def _sort_out(promised: Sequence[Partition], claims: Claims) -> dict[str, list[Advertisement]]:
    """The claims by the partition that was selected; each belongs to one."""
    parts: dict[str, list[Advertisement]] = {partition.prefix: [] for partition in promised}
    # Nearly all partitions are of the shortest length: one slice and one lookup find the home of a claim.
    shortest, *longer = sorted({len(prefix) for prefix in parts}) or [START_LENGTH]
    ends = 2 + shortest
    for claim in claims:
        home = parts.get(claim[0][2:ends])
        if home is None:
            home = next((parts[p] for n in longer if (p := claim.hash[2 : 2 + n]) in parts), None)
        if home is None:
            raise ListingMismatch(f"{claim.hash} belongs to no listed partition", "050-PART-16")
        home.append(claim)
    return parts
