"""One moment of what may be sent under a policy (050 `EffectiveSend`, 070 shared sets).

Rule: a generation never changes, so any number of links hold the same one. It is columns of ids; advertisements, their
digests and their roots are made for whom they must be made, once for all of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from lace.differences.ids import Ids, columnar, ids_of_texts, in_text_order
from lace.differences.idset import IdSet, set_of
from lace.differences.keyed import U64, DifferenceKey
from lace.differences.setview import measured_set
from lace.differences.tree import UNKNOWN, Tree
from lace.errors import InvalidText
from lace.interlace.claims.advertisement import Advertisement, bare_claims, canonical_bytes
from lace.interlace.claims.columns import column_parts
from lace.interlace.claims.partitions import START_LENGTH, AdvertisementSet, Partition
from lace.interlace.claims.recognition import WorkOut
from lace.interlace.host import Call
from lace.thresholds import RuleThresholds

_MANY = 100_000
_MOST_RECENT = 1024  # advertisements that are kept for the next link that has to list them
_FORESEEN = 64  # advertisements that are made before a link asks for them
_MOST_PARTITIONS: int = 64**START_LENGTH
_FOLLOWED_SHARE = 4  # if less than one in so many changed, the advertisements are changed too, else made again

Advertise = Callable[[Iterable[str]], list[Advertisement]]
Roots = Mapping[str, Sequence[Partition]]  # of all partitions of a set, by label


class Generation:
    """A set of records that may be sent."""

    def __init__(
        self,
        number: int,
        ids: IdSet,
        advertise: Advertise,
        max_line_bytes: int,
        tree: Tree = UNKNOWN,
        *,
        is_bare: bool = False,
        roots: Roots | None = None,
        min_columns: int = RuleThresholds().min_claim_columns,
    ) -> None:
        self.number = number
        self.ids = ids
        self.is_bare = is_bare  # whether no advertisement has a field: then the ids are all there is to say
        self._advertise = advertise
        self._min_columns = min_columns
        self._max_line_bytes = max_line_bytes
        self._roots = roots or {}  # of the partitions by label, as far as they are known before anybody asks
        self._standard: AdvertisementSet | None = None
        self._tree = tree
        self._sizes: dict[str, int] = {}
        self._partitions: int | None = None  # that are not empty, once somebody asked
        self.gone: set[str] = set()  # records that were no longer stored when they were to be advertised
        self._recent: dict[str, Advertisement] = {}  # that links asked for: what is new to one is new to many
        self._making = threading.Lock()
        self._rooting = threading.Lock()
        self._count = len(ids)

    def __len__(self) -> int:
        return self._count

    @property
    def partition_count(self) -> int:
        """How many starting partitions are not empty; for a large set how many there may be."""
        if len(self) > _MANY:
            return _MOST_PARTITIONS
        if self._partitions is None:
            self._partitions = self.ids.partition_count()
        return self._partitions

    def among(self, records: Sequence[str]) -> list[str]:
        """Those of some records that are in the set, in their order."""
        if not records:
            return []
        try:
            wanted = ids_of_texts(records)
        except InvalidText:  # of a format that no record of ours has
            return self.among(columnar(records))
        here = self.ids.among(wanted)
        if bool(here.all()):
            return list(records)
        if 2 * int(here.sum()) > len(here):  # texts are made of the fewer
            missing = set(wanted.take(~here).texts())
            return [record for record in records if record not in missing]
        found = set(wanted.take(here).texts())
        return [record for record in records if record in found]

    def some(self, records: Iterable[str]) -> list[Advertisement]:
        """The advertisements of some records of the set, sorted."""
        if self._standard is None or self.is_bare:  # in columns one claim costs more to find than to make
            return self._made(list(records))
        return sorted(claim for record in records if (claim := self._standard.get(record)) is not None)

    def some_at_once(self, records: Sequence[str]) -> list[Advertisement] | None:
        """What `some` gives, if all of it is at hand and no lock is needed; else None."""
        if self.is_bare:
            return bare_claims(sorted(records))
        recent, standard = self._recent, self._standard  # what is in them stays as it is
        known = recent.get if standard is None else standard.get
        found = [claim for record in records if (claim := known(record)) is not None]
        return sorted(found) if len(found) == len(records) else None

    def foresee(self, records: Sequence[str]) -> None:
        """Make what links will ask for at the same time, if those are a few advertisements that have to be read."""
        if self._standard is None and not self.is_bare and len(records) <= _FORESEEN:
            self._made(records)

    def listing(self) -> list[Advertisement]:
        """All advertisements, sorted."""
        return self._claims_of(self.ids.ids().texts()) if self._standard is None else self._standard.listing()

    def listed(self, at_once: int) -> Iterator[Sequence[Advertisement]]:
        """All advertisements, sorted, some at a time; where the ids say it all, each when its turn has come."""
        if self._standard is None and self.is_bare:
            ids = in_text_order(self.ids.ids())
            for start in range(0, len(ids), at_once):
                yield bare_claims(ids.take(slice(start, start + at_once)).texts())
            return
        yield from in_pieces(self.listing(), at_once)

    def _claims_of(self, records: Iterable[str]) -> list[Advertisement]:
        """What we say about some records, sorted; about one that was removed since the set was worked out nothing but
        that it is in the set, and it is noted."""
        asked = dict.fromkeys(records)
        claims = self._advertise(asked)
        if len(claims) < len(asked):
            found = {claim.hash for claim in claims}
            gone = [record for record in asked if record not in found]
            self.gone.update(gone)
            claims = sorted([*claims, *bare_claims(gone)])
        return claims

    def _made(self, records: Sequence[str]) -> list[Advertisement]:
        if len(records) > _MOST_RECENT:
            return self._claims_of(records)
        with self._making:
            unknown = [record for record in records if record not in self._recent]
            if unknown:
                if len(self._recent) + len(unknown) > _MOST_RECENT:
                    self._recent = {}
                    unknown = list(records)
                self._recent.update((claim.hash, claim) for claim in self._claims_of(unknown))
            return sorted(self._recent[record] for record in dict.fromkeys(records) if record in self._recent)

    def since(self, earlier: Generation) -> tuple[Ids, Ids] | None:
        """What came and what went from an earlier one to this one."""
        return self.ids.since(earlier.ids)

    def measure(self, key: DifferenceKey) -> U64:
        """The set under a key (070)."""
        return measured_set(self.ids, key)

    @property
    def standard(self) -> AdvertisementSet:
        """All advertisements, for a peer that has to be told them (P14, P16)."""
        with self._making:
            if self._standard is None:
                self._standard = self._all_advertisements()
            return self._standard

    def _all_advertisements(self) -> AdvertisementSet:
        ids = self.ids.ids()
        if self.is_bare and len(ids) >= self._min_columns:
            standard = AdvertisementSet(self._max_line_bytes, column_parts(ids))
        else:
            standard = AdvertisementSet(self._max_line_bytes)
            standard.put_all(self._claims_of(ids.texts()))
        for source, partitions in self._roots.items():
            standard.remember(source, partitions)
        return standard

    def summaries(self, source: str, work_out: WorkOut, call: Call) -> list[Partition]:
        """Every starting partition under a label; if many links ask at once, one of them works out the roots."""
        standard = self.standard
        with self._rooting:
            parts = standard.unsummarised(source, standard.prefixes())
            if parts:
                call.charge(rows=sum(map(len, parts.values())))
                standard.remember(source, work_out(parts, source, self._max_line_bytes))
        return standard.summaries(source)

    def get_ready(self, source: str, work_out: WorkOut, call: Call, *, is_standard: bool) -> None:
        """Work out what links will ask for first: the root of the set, or, where none of them compares roots and the
        ids are all there is to say, the roots of its partitions under a label."""
        if not is_standard:
            assert self.root
        elif self.is_bare:
            self.summaries(source, work_out, call)

    def known_roots(self) -> Roots:
        """The roots of all partitions, under each label for which they were worked out or are known from before."""
        standard = self._standard
        if standard is None or not self.is_bare:  # fields may hang on more than the set
            return self._roots
        return {source: standard.known_summaries(source) for source in standard.known_labels()}

    @property
    def spelled_out(self) -> AdvertisementSet | None:
        """All advertisements, if they were made for some peer; else None."""
        return self._standard

    def listing_bytes(self, source: str) -> int:
        """How long the listing of all of it is under a label."""
        standard = self.standard
        with self._making:
            found = self._sizes.get(source)
            if found is None:
                found = self._sizes[source] = standard.size_under(source)
            return found

    @property
    def root(self) -> bytes:
        """The root of the set's tree (070), worked out when it is first asked for, from what changed."""
        with self._making:
            self._tree = self._tree.of(self.ids)
            return self._tree.root()

    def holding(self, ids: IdSet, tree: Tree = UNKNOWN, roots: Roots | None = None) -> Generation:
        """The next one, of these ids; `roots` of its partitions, where they are known."""
        return Generation(
            self.number + 1,
            ids,
            self._advertise,
            self._max_line_bytes,
            tree,
            is_bare=self.is_bare,
            roots=roots,
            min_columns=self._min_columns,
        )

    def anew(self, records: Ids) -> Generation:
        """The next one, of these records; this one if they are the same."""
        ids = set_of(records)
        came, went = ids.since(self.ids)
        if not len(came) and not len(went):
            return self
        later = self.holding(ids, self._tree.touched(came).touched(went))
        if _FOLLOWED_SHARE * (len(came) + len(went)) < len(self):
            self._spell_out(later, came.texts(), went.texts())
        return later

    def then(self, added: Sequence[str], removed: Sequence[str]) -> Generation:
        """The next one."""
        coming, going = ids_of_texts(added), ids_of_texts(removed)
        later = self.holding(self.ids.change(coming, going), self._tree.touched(coming).touched(going))
        self._spell_out(later, added, removed)
        return later

    def _spell_out(self, later: Generation, added: Sequence[str], removed: Sequence[str]) -> None:
        """What somebody had to be told, or has roots that are known, the next one has as well."""
        if self._standard is not None or self._roots:
            later._standard, later._sizes = self._followed(self.standard, later._claims_of(added), removed)
            later.gone.update(self.gone.difference(removed))

    def _followed(
        self, standard: AdvertisementSet, added: Sequence[Advertisement], removed: Sequence[str]
    ) -> tuple[AdvertisementSet, dict[str, int]]:
        """All advertisements after a change, and how long their listings are."""
        touched = {*removed, *(claim.hash for claim in added)}
        gone = [claim for record in touched if (claim := standard.get(record)) is not None]
        sizes = {
            source: size + sum(self._size(claim, source) for claim in added) - sum(self._size(c, source) for c in gone)
            for source, size in self._sizes.items()
        }
        return standard.changed(added, removed), sizes

    def _size(self, claim: Advertisement, source: str) -> int:
        return len(canonical_bytes(claim, source, self._max_line_bytes))


def in_pieces(claims: Sequence[Advertisement], at_once: int) -> Iterator[Sequence[Advertisement]]:
    """Some claims at a time."""
    for start in range(0, len(claims), at_once):
        yield claims[start : start + at_once]
