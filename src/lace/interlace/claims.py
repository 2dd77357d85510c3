"""The peer's claims as a host holds them, and how its summaries are settled against what we know (050, P16).

Rule: a partition whose count and root are those of claims that we can already name is not transferred: either what
we hold from before, or what we would list ourselves under the peer's label. Everything else is checked before use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from lace.differences.keyed import U64, DifferenceKey
from lace.interlace.advertisement import Advertisement, Claims, record_digests
from lace.interlace.cursor import AdvertisementCursor
from lace.interlace.effects import Reconcile, TakeChange, TakeClaims
from lace.interlace.host import Call, ListingMismatch
from lace.interlace.inputs import ClaimsTaken, DifferenceTaken, Reconciled
from lace.interlace.likeness import Likeness, OwnSet, adds_up, as_theirs, measure_of
from lace.interlace.merkle import roots_without_one
from lace.interlace.partitions import START_LENGTH, AdvertisementSet, ClaimChanges, Partition, Parts, summarise
from lace.notation import b64a

_MOST_GUESSES = 8_192  # roots tried in a call for partitions that lack one record
_MOST_GUESSED_ROWS = 1 << 21  # claims hashed for that: a root costs as much as its partition is long


class OwnListing(Protocol):
    """What we would list ourselves, as far as partitions are compared with it."""

    def count_under(self, prefix: str) -> int: ...
    def summary(self, prefix: str, source: str) -> Partition: ...
    def under(self, prefix: str) -> list[Advertisement]: ...
    def unsummarised(self, source: str, prefixes: Iterable[str]) -> Parts: ...
    def remember(self, source: str, partitions: Iterable[Partition]) -> None: ...


WorkOut = Callable[[Parts, str, int], Sequence[Partition]]
"""Works out what a source with a label says of some partitions, as `partitions.summarise` does."""


class PeerClaims:
    """What one peer claims under one label."""

    def __init__(self, source: str, max_line_bytes: int, work_out: WorkOut = summarise) -> None:
        self.source = source
        self._max_line_bytes = max_line_bytes
        self._work_out = work_out
        self._held = AdvertisementSet(max_line_bytes)
        self._like: Likeness | None = None  # 070: what is held instead
        self._measured: U64 | None = None  # what the peer claims now, as it told itself
        self._unseen = ClaimChanges([], [])

    def __len__(self) -> int:
        return len(self._held) if self._like is None else len(self._like)

    def among(self, records: Iterable[str]) -> list[str]:
        """Those of some records that the peer claims to have."""
        return self._held.among(records) if self._like is None else self._like.among(records)

    def about(self, record: str) -> Advertisement | None:
        """The claim about a record that is not ours, if there is one."""
        return self._held.get(record) if self._like is None else self._like.foreign.get(record)

    @property
    def is_relative(self) -> bool:
        """Whether they are known as ours but for what differs."""
        return self._like is not None

    @property
    def is_measured(self) -> bool:
        """Whether it is known what they sum up to (070)."""
        return self._measured is not None

    def has_beyond(self, own: OwnSet, most: int) -> bool:
        """Whether any of them is about a record that is not in this set of ours, or that takes longer to say."""
        if self._like is None or len(self._like.foreign) > most:
            return True
        foreign = list(self._like.foreign)
        return bool(foreign) and len(own.among(foreign)) < len(foreign)

    def beyond(self, own: OwnSet) -> list[Advertisement]:
        """The claims about records that are not in our set."""
        if self._like is not None:
            return list(self._like.foreign.values())
        if (spelled := own.spelled_out) is not None:
            return self._held.beyond(spelled)
        listing = self._held.listing()
        if not len(own):
            return listing
        ours = set(own.among([claim.hash for claim in listing]))
        return [claim for claim in listing if claim.hash not in ours]

    def follow(self, own: OwnSet, *, keeps_fields: bool) -> None:
        """Our set is another one now."""
        if self._like is not None and not self._like.follow(own, keeps_fields=keeps_fields):
            self._spell_out()

    def _spell_out(self) -> None:
        """Hold every claim: whoever asks needs them one by one."""
        if self._like is not None:
            claims, self._like = self._like.claims(self.source, self._max_line_bytes), None
            self._note(self._held.replace_all(claims))

    def forget(self) -> None:
        """Know of no claim: the peer says again what it has."""
        self._like = self._measured = None
        self._note(self._held.replace_all(()))

    def listing(self) -> list[Advertisement]:
        """All claims, sorted."""
        self._spell_out()
        return self._held.listing()

    def fingerprint(self) -> bytes:
        """A digest that equal claims share."""
        self._spell_out()
        return self._held.fingerprint(self.source)

    def take_changes(self) -> ClaimChanges:
        """What changed since this was last asked, removals first: for whoever evaluates over the claims."""
        self._spell_out()
        changes, self._unseen = self._unseen, ClaimChanges([], [])
        return changes

    def begin_anew(self) -> None:
        """Nobody has evaluated over these claims yet."""
        self._spell_out()
        self._measured = None
        self._unseen = ClaimChanges(self._held.listing(), [])

    def restore(self, cursor: AdvertisementCursor) -> None:
        """Begin with what was kept (050-SEND-02)."""
        self._note(self._held.replace_all(cursor.claims))
        self._held.remember(self.source, cursor.partitions)

    def as_cursor(self, plan: str) -> AdvertisementCursor:
        """What to keep until the next exchange."""
        self._spell_out()
        known = tuple(self._held.known_summaries(self.source))
        return AdvertisementCursor(plan=plan, source=self.source, claims=tuple(self.listing()), partitions=known)

    # --- what the peer says ------------------------------------------------------------------------------------

    def take(self, wanted: TakeClaims, own: OwnSet | None = None) -> ClaimsTaken:
        """A listing, which replaces what was held (050-RECON-04), or the sum of its changes.

        Where sets are compared, `own` is ours: if nothing is in it and nothing held, a listing is what differs.
        """
        if own is not None and not len(own) and wanted.is_whole and wanted.added and not len(self):
            self._like, self._measured = Likeness(own, (), wanted.added), None
            return ClaimsTaken(len(self._like), changed=True)
        self._spell_out()
        self._measured = None
        before = self._held.version
        if wanted.is_whole:
            self._note(self._held.replace_all(wanted.added))
        else:
            dropped = [claim for record in wanted.removed if (claim := self._held.drop(record)) is not None]
            taken = self._held.put_all(wanted.added)
            self._note(ClaimChanges(taken.added, [*dropped, *taken.removed]))
        is_own = own is not None and len(own) == len(self._held) == len(own.among(list(self._held)))
        return ClaimsTaken(len(self._held), changed=self._held.version != before, is_own=is_own)

    def reconcile(self, wanted: Reconcile, own: OwnListing, call: Call) -> Reconciled:
        """Take over every partition that can be named; `own` is the set of the handle."""
        self._spell_out()
        self._measured = None
        before = self._held.version
        if wanted.listed or wanted.claims:
            self._take_listed(wanted.listed, wanted.claims)
        self._forget_absent(wanted)
        settling = _Settling(self._held, own, self.source, self._max_line_bytes, call)
        settling.know_roots(wanted.offered, self._work_out)
        unknown: dict[Partition, int] = {}
        for partition in wanted.offered:
            if settling.is_held(partition):
                continue
            claims = settling.name(partition)
            if claims is None:
                unknown[partition] = settling.known_count(partition)
            else:
                self._take_over(partition, claims)
        return Reconciled(unknown=unknown, count=len(self._held), changed=self._held.version != before)

    def take_difference(
        self, own: OwnSet, absent: Sequence[str], claims: Claims, told: U64, ours: U64, key: DifferenceKey
    ) -> DifferenceTaken:
        """Ours without what the peer lacks, with what it lists, if that adds up; `ours` is the measure of our set."""
        listed = [claim.hash for claim in claims]
        if not adds_up(ours, absent, listed, told, key) or own.among(listed):  # P35: nothing about records of ours
            return DifferenceTaken(agrees=False)
        before, self._like = self._like, Likeness(own, absent, claims)
        changed = before is None or before.absent != self._like.absent or before.foreign != self._like.foreign
        self._measured = told
        return DifferenceTaken(agrees=True, absent=absent, count=len(self), changed=changed)

    def take_change(self, wanted: TakeChange, own: OwnSet, key: DifferenceKey) -> DifferenceTaken:
        """What changed since the claims were last taken over, if that adds up (070-BASE-02)."""
        listed, going = [claim.hash for claim in wanted.added], list(wanted.removed)
        if len(self.among(going)) != len(going) or self.among(listed) or not set(going).isdisjoint(listed):
            return DifferenceTaken(agrees=False)
        start = self._measure(key)
        known = {*self.among(wanted.sent), *listed}
        sent = [record for record in own.among(wanted.sent) if record not in known]
        for also in (sent, []) if sent else ([],):
            if start is not None and adds_up(start, going, [*listed, *also], wanted.told, key):
                self._change(wanted.added, going, own.some(also) if also else [])
                self._measured = wanted.told
                changed = bool(listed or going or also)
                return DifferenceTaken(agrees=True, count=len(self), changed=changed)
        return DifferenceTaken(agrees=False)

    def _measure(self, key: DifferenceKey) -> U64 | None:
        if self._measured is None:
            like = self._like
            self._measured = measure_of(self._held, key) if like is None else like.measure(key)
        return self._measured

    def _change(self, added: Claims, removed: Sequence[str], sent: Claims) -> None:
        """Take over a change that was checked; about records of ours our own claims count."""
        like = self._like
        if like is None:
            more = [*added, *as_theirs(sent, self.source, self._max_line_bytes)]
            dropped = [claim for record in removed if (claim := self._held.drop(record)) is not None]
            taken = self._held.put_all(more)
            self._note(ClaimChanges(taken.added, [*dropped, *taken.removed]))
            return
        for record in removed:
            if like.foreign.pop(record, None) is None:
                like.absent.add(record)
        for claim in (*added, *sent):
            if claim.hash in like.absent:
                like.absent.discard(claim.hash)
            else:
                like.foreign[claim.hash] = claim

    def _take_listed(self, promised: Sequence[Partition], claims: Claims) -> None:
        parts = _sort_out(promised, claims)
        found = {partition.prefix: partition for partition in self._work_out(parts, self.source, self._max_line_bytes)}
        for partition in promised:
            if found[partition.prefix] != partition:
                raise ListingMismatch(f"partition {partition.prefix} is not what its summary says", "050-PART-15")
        for partition in promised:
            self._take_over(partition, parts[partition.prefix])

    def _forget_absent(self, wanted: Reconcile) -> None:
        """What is summarised is all there is: an absent prefix has count 0 (050-LIST-09)."""
        present = {partition.prefix for partition in wanted.offered}
        if wanted.parents is None:
            for prefix in self._held.prefixes():
                if prefix not in present:
                    self._note(self._held.replace(prefix, ()))
            return
        for parent in wanted.parents:
            length = len(parent) + 1
            gone = [claim for claim in self._held.under(parent) if claim.hash[2 : 2 + length] not in present]
            for claim in gone:
                self._held.drop(claim.hash)
            self._note(ClaimChanges([], gone))

    def _take_over(self, partition: Partition, claims: Iterable[Advertisement]) -> None:
        """Hold the claims of a partition; they were checked against its root, which need not be worked out again."""
        self._note(self._held.replace(partition.prefix, claims))
        self._held.remember(self.source, (partition,))

    def _note(self, changes: ClaimChanges) -> None:
        self._unseen.removed.extend(changes.removed)
        self._unseen.added.extend(changes.added)


class _Settling:
    """Which partitions of a peer are claims that we can name: one call's worth of comparing."""

    def __init__(self, held: AdvertisementSet, own: OwnListing, source: str, max_line_bytes: int, call: Call) -> None:
        self._held = held
        self._own = own
        self._source = source
        self._max_line_bytes = max_line_bytes
        self._call = call
        self._guesses = _MOST_GUESSES
        self._guessed_rows = _MOST_GUESSED_ROWS

    def know_roots(self, partitions: Sequence[Partition], work_out: WorkOut) -> None:
        """Work out at once the roots of those of our starting partitions that will be compared."""
        likely = [
            partition.prefix
            for partition in partitions
            if len(partition.prefix) == START_LENGTH
            and self._own.count_under(partition.prefix) == partition.count
            and not self.is_held(partition)
        ]
        parts = self._own.unsummarised(self._source, likely)
        self._call.charge(rows=sum(map(len, parts.values())))
        self._own.remember(self._source, work_out(parts, self._source, self._max_line_bytes))

    def is_held(self, partition: Partition) -> bool:
        """Whether it is what we hold already."""
        return self._is(partition, self._held)

    def known_count(self, partition: Partition) -> int:
        """How many claims we know under its prefix."""
        return max(self._held.count_under(partition.prefix), self._own.count_under(partition.prefix))

    def name(self, partition: Partition) -> list[Advertisement] | None:
        """Its claims, if we can name them."""
        if self._is(partition, self._own):  # a virtual root: same set, their label
            return as_theirs(self._own.under(partition.prefix), self._source, self._max_line_bytes)
        return self._all_but_one(partition, self._held) or self._all_but_one(partition, self._own)

    def _is(self, partition: Partition, known: OwnListing) -> bool:
        """Whether a partition is what we know; roots are worked out only where the counts agree."""
        prefix = partition.prefix
        return known.count_under(prefix) == partition.count and known.summary(prefix, self._source) == partition

    def _all_but_one(self, partition: Partition, known: OwnListing) -> list[Advertisement] | None:
        """The claims we can name but for one, if that is what the root says: the peer lacks one record of ours."""
        if known.count_under(partition.prefix) != partition.count + 1:
            return None
        claims = as_theirs(known.under(partition.prefix), self._source, self._max_line_bytes)
        count = len(claims)
        if count > self._guesses or count * count > self._guessed_rows:  # a hostile peer could make us try in vain
            return None
        digests = record_digests(claims, self._source, self._max_line_bytes)
        for left_out, root in enumerate(roots_without_one(digests)):
            self._guesses -= 1
            self._guessed_rows -= count
            self._call.charge(rows=count)
            if b64a.encode(root) == partition.root:
                return claims[:left_out] + claims[left_out + 1 :]
        return None


def _sort_out(promised: Sequence[Partition], claims: Claims) -> dict[str, list[Advertisement]]:
    """The claims by the partition that was selected; each belongs to one."""
    parts: dict[str, list[Advertisement]] = {partition.prefix: [] for partition in promised}
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
