"""What is held of a peer's claims, one by one or as ours but for what differs (050, 070, P35)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pytest

from differences.sets import KEY
from interlace.deciding import RECORDS, ROOT, SOURCE, reason_of, refuse
from interlace.deciding import record as record_id
from lace.differences.ids import Ids, ids_of_texts
from lace.differences.keyed import U64
from lace.differences.setview import measured
from lace.interlace.claims.advertisement import Advertisement, FieldClaim, bare_claims
from lace.interlace.claims.partitions import AdvertisementSet, Partition, summarise
from lace.interlace.claims.peerclaims import PeerClaims
from lace.interlace.claims.relative import RelativeClaims, adds_up, as_theirs, measure_of
from lace.interlace.effects import Reconcile, SetHandle, TakeChange, TakeClaims
from lace.interlace.host import Call, ListingMismatch
from lace.interlace.inputs import Measured
from lace.interlace.loop.differencefacts import ASK, DROP, only, read_summary, summary_facts
from lace.interlace.vocabulary import DIFFERENCE_ROOT, DIFFERENCE_SUMMARY, DIFFERENCE_WITHDRAWN
from lace.notation import b64a
from lace.notation.digest import digest
from lace.notation.fact import Fact
from lace.notation.identifiers import RecordHash
from lace.thresholds import ClaimThresholds

FIELD = (FieldClaim("App", "0", "x"),)


@dataclass
class Own:
    """A set of ours."""

    records: Sequence[str]
    number: int = 0
    fields: tuple[FieldClaim, ...] = ()
    is_near: bool = True
    spelled_out: AdvertisementSet | None = None
    gone: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.records)

    def among(self, records: Sequence[str]) -> list[str]:
        return [one for one in records if one in self.records]

    def some(self, records: Iterable[str]) -> list[Advertisement]:
        return [Advertisement(one, self.fields) for one in records]

    def listing(self) -> list[Advertisement]:
        return self.some(self.records)

    def since(self, earlier: Own) -> tuple[Ids, Ids] | None:
        now, then = ids_of_texts(self.records), ids_of_texts(earlier.records)
        return (now.without(then), then.without(now)) if self.is_near else None

    def measure(self, key: object) -> U64:
        return sums(self.records)


def sums(records: Sequence[str]) -> U64:
    return measured(ids_of_texts(records), KEY)


def whole(records: Sequence[str]) -> TakeClaims:
    return TakeClaims(added=bare_claims(records), is_whole=True)


def follow(alike: RelativeClaims, own: Own) -> None:
    moved = alike.moved(own)
    assert moved is not None
    assert not moved.left
    alike.follow(own, moved, ())


def of_peer(records: Sequence[str], **thresholds: int) -> PeerClaims:
    claims = PeerClaims(SOURCE, 1024, thresholds=ClaimThresholds(**thresholds))
    claims.take(whole(records))
    return claims


def like(own: Own, absent: Sequence[str], foreign: Sequence[str]) -> PeerClaims:
    """Claims that are ours but for what differs."""
    claims = PeerClaims(SOURCE, 1024)
    told = sums([one for one in [*own.records, *foreign] if one not in absent])
    taken = claims.take_difference(own, absent, bare_claims(foreign), told, sums(own.records), KEY)
    assert taken.agrees
    return claims


# --- listings ---------------------------------------------------------------------------------------------------------


@pytest.mark.clause("050-RECON-04")
def test_a_listing_replaces_what_was_held_and_changes_are_told_once() -> None:
    claims = PeerClaims(SOURCE, 1024)
    taken = claims.take(whole(RECORDS[:3]))
    assert (taken.count, taken.changed, taken.is_own) == (3, True, False)
    taken = claims.take(whole(RECORDS[:3]))
    assert (taken.count, taken.changed) == (3, False)
    taken = claims.take(TakeClaims(added=bare_claims(RECORDS[3:4]), removed=[RECORDS[0], RECORDS[9]]))
    assert (taken.count, taken.changed, len(claims)) == (3, True, 3)
    assert claims.take(TakeClaims(added=[], removed=[])).changed is False
    assert claims.listing() == bare_claims(RECORDS[1:4])
    assert claims.take_changes() == (bare_claims(RECORDS[1:4]), [])  # what came and went in between is nobody's
    assert claims.take_changes() == ([], [])
    claims.take(TakeClaims(added=bare_claims(RECORDS[4:5]), removed=[RECORDS[1]]))
    assert claims.take_changes() == (bare_claims(RECORDS[4:5]), bare_claims(RECORDS[1:2]))
    claims.take(TakeClaims(added=bare_claims(RECORDS[1:2]), removed=[RECORDS[4]]))
    claims.take_changes()
    claims.begin_anew()
    assert claims.take_changes() == (bare_claims(RECORDS[1:4]), [])
    claims.forget()
    assert (len(claims), claims.take_changes()) == (0, ([], bare_claims(RECORDS[1:4])))
    assert not claims.is_relative
    assert not claims.is_measured


@pytest.mark.clause("070-EQUAL-03")
@pytest.mark.parametrize(
    ("theirs", "ours", "is_own"),
    [(3, 3, True), (3, 2, False), (2, 3, False), (0, 0, True), (0, 1, False)],
)
def test_a_listing_that_is_ours_is_known_as_such(theirs: int, ours: int, is_own: bool) -> None:
    claims = of_peer(RECORDS[30:31])
    assert claims.take(whole(RECORDS[:theirs]), Own(RECORDS[:ours])).is_own is is_own
    assert claims.take(whole(RECORDS[:theirs])).is_own is False
    if theirs:
        shifted = Own(RECORDS[1 : theirs + 1])
        assert claims.take(whole(RECORDS[:theirs]), shifted).is_own is False


@pytest.mark.clause("070-TAKE-03")
@pytest.mark.parametrize(
    ("theirs", "ours", "most", "named"),
    [
        ((0, 5), (3, 9), 4, ((5, 9), (0, 3))),
        ((0, 5), (3, 9), 3, None),  # the peer lacks four
        ((0, 5), (1, 5), 1, ((5, 5), (0, 1))),
        ((0, 5), (2, 5), 1, None),
        ((0, 0), (0, 2), 2, ((0, 2), (0, 0))),
        ((0, 0), (0, 2), 1, None),
        ((0, 2), (0, 0), 2, ((0, 0), (0, 2))),
        ((0, 2), (0, 0), 1, None),
        ((0, 3), (3, 6), 0, None),
        ((0, 3), (0, 3), 9, None),  # equal: nothing is lacking
        ((0, 0), (0, 0), 9, None),
    ],
)
@pytest.mark.parametrize("held", [0, 1])
def test_what_differs_from_our_listing_is_named_up_to_a_bound(
    theirs: tuple[int, int], ours: tuple[int, int], most: int, named: tuple[tuple[int, int], ...] | None, held: int
) -> None:
    claims = of_peer(RECORDS[30:31]) if held else PeerClaims(SOURCE, 1024)
    listing = replace(whole(RECORDS[slice(*theirs)]), max_named=most)
    lacking = claims.take(listing, Own(RECORDS[slice(*ours)])).lacking
    if named is None:
        assert lacking is None
    else:
        assert lacking is not None
        assert [list(lacking.peer), list(lacking.ours)] == [RECORDS[slice(*part)] for part in named]
    assert claims.take(listing).lacking is None  # where sets are not compared


def test_to_who_has_nothing_a_listing_is_what_differs() -> None:
    claims = PeerClaims(SOURCE, 1024)
    taken = claims.take(whole(RECORDS[:3]), Own([]))
    assert (taken.count, taken.changed, claims.is_relative) == (3, True, True)
    assert claims.about(RECORDS[0]) == Advertisement(RECORDS[0])
    assert claims.take(whole(RECORDS[:2]), Own([])).count == 2  # something is held: an ordinary listing
    assert not claims.is_relative
    for wanted, own in (
        (whole([]), Own([])),
        (whole(RECORDS[:2]), Own(RECORDS[:1])),
        (TakeClaims(added=bare_claims(RECORDS[:2])), Own([])),
        (whole(RECORDS[:2]), None),
    ):
        other = PeerClaims(SOURCE, 1024)
        other.take(wanted, own)
        assert not other.is_relative


# --- ours but for what differs ----------------------------------------------------------------------------------------


@pytest.mark.clause("070-END-01")
def test_what_differs_is_taken_over_if_it_adds_up() -> None:
    own = Own(RECORDS[:10])
    claims = PeerClaims(SOURCE, 1024)
    told = sums([*RECORDS[2:10], *RECORDS[20:23]])
    for absent, foreign, sum_of_ours in (
        (RECORDS[:1], RECORDS[20:23], own.records),
        (RECORDS[:2], RECORDS[20:22], own.records),
        (RECORDS[:2], RECORDS[20:23], RECORDS[:9]),
        (["X.00.H4"], RECORDS[20:23], own.records),
        (RECORDS[:2], ["X.00.H4"], own.records),
    ):
        refused = claims.take_difference(own, absent, bare_claims(foreign), told, sums(sum_of_ours), KEY)
        assert not refused.agrees
    own_again = sums([*RECORDS[2:10], RECORDS[5]])
    assert not claims.take_difference(
        own, RECORDS[:2], bare_claims(RECORDS[5:6]), own_again, sums(own.records), KEY
    ).agrees
    assert not claims.is_relative
    for turn in range(2):
        taken = claims.take_difference(own, RECORDS[:2], bare_claims(RECORDS[20:23]), told, sums(own.records), KEY)
        assert (taken.agrees, taken.absent, taken.count, taken.changed) == (True, RECORDS[:2], 11, turn == 0)
    assert (claims.is_relative, claims.is_measured, len(claims)) == (True, True, 11)
    assert claims.among([RECORDS[1], RECORDS[2], RECORDS[20], RECORDS[30]]) == [RECORDS[2], RECORDS[20]]
    assert claims.about(RECORDS[20]) == Advertisement(RECORDS[20])
    assert claims.about(RECORDS[2]) is None
    other = claims.take_difference(
        own, RECORDS[:3], bare_claims(RECORDS[20:23]), told - sums(RECORDS[2:3]), sums(own.records), KEY
    )
    assert (other.agrees, other.changed, other.count) == (True, True, 10)


def test_what_is_beyond_our_set_is_known() -> None:
    own = Own(RECORDS[:10])
    claims = like(own, RECORDS[:2], RECORDS[20:23])
    assert claims.beyond(own) == bare_claims(RECORDS[20:23])
    assert claims.has_beyond(own, 3)
    assert claims.has_beyond(own, 2)
    assert claims.has_beyond(Own(RECORDS), 2)
    assert not claims.has_beyond(Own(RECORDS), 3)
    assert not like(own, RECORDS[:2], []).has_beyond(own, 0)
    spelled = of_peer(RECORDS[5:15])
    assert spelled.has_beyond(Own(RECORDS), 99)
    assert spelled.beyond(own) == bare_claims(RECORDS[10:15])
    listed = AdvertisementSet(1000)
    listed.put_all(bare_claims(RECORDS[:10]))
    assert spelled.beyond(Own([], spelled_out=listed)) == bare_claims(RECORDS[10:15])
    nothing = Own([])
    nothing.among = refuse  # type: ignore[method-assign]
    assert spelled.beyond(nothing) == bare_claims(RECORDS[5:15])


def test_claims_that_are_needed_one_by_one_are_spelled_out() -> None:
    own = Own(RECORDS[:4])
    for ask in (PeerClaims.listing, PeerClaims.fingerprint, PeerClaims.take_changes, PeerClaims.begin_anew):
        claims = like(own, RECORDS[:1], RECORDS[20:21])
        ask(claims)
        assert not claims.is_relative
        assert claims.listing() == bare_claims([*RECORDS[1:4], RECORDS[20]])
    cursor = like(own, RECORDS[:1], []).as_cursor("plan")
    assert (cursor.plan, cursor.source, cursor.claims) == ("plan", SOURCE, tuple(bare_claims(RECORDS[1:4])))
    restored = PeerClaims(SOURCE, 1024)
    restored.restore(cursor)
    assert restored.listing() == bare_claims(RECORDS[1:4])
    assert like(own, [], []).fingerprint() == of_peer(RECORDS[:4]).fingerprint()


def test_a_set_of_ours_that_changes_is_followed() -> None:
    own = Own(RECORDS[:10])
    claims = like(own, RECORDS[:2], RECORDS[20:23])
    # RECORDS[20] came: the peer's claim about it is ours now; [30] came and it lacks that; [1] and [5] went.
    now = Own([*[RECORDS[0]], *RECORDS[2:5], *RECORDS[6:10], RECORDS[20], RECORDS[30]], number=1)
    held = set(claims.among(RECORDS))
    claims.follow(now, keeps_fields=False)
    assert claims.is_relative
    assert set(claims.among(RECORDS)) == held
    assert len(claims) == 11
    assert sorted(claim.hash for claim in claims.beyond(now)) == sorted([RECORDS[5], RECORDS[21], RECORDS[22]])
    for keeps_fields, is_near, stays in ((True, True, True), (False, False, False), (False, True, True)):
        other = like(own, RECORDS[:2], [])
        other.follow(Own(RECORDS[:9], number=2, is_near=is_near), keeps_fields=keeps_fields)
        assert other.is_relative is stays
        assert other.listing() == bare_claims(RECORDS[2:10])
    lacking = like(own, RECORDS[:2], [])
    lacking.follow(Own(RECORDS[1:10], number=2), keeps_fields=True)  # the peer had none of what went
    assert lacking.is_relative


@pytest.mark.clause("070-END-02")
@pytest.mark.parametrize("is_near", [True, False])
def test_what_is_claimed_about_a_record_that_we_removed_is_not_known_until_the_peer_says_it(is_near: bool) -> None:
    def removed(gone: str = RECORDS[9]) -> PeerClaims:
        claims = like(Own(RECORDS[:10], fields=FIELD, gone=frozenset([gone])), [], [])
        claims.follow(Own(RECORDS[:9], number=1, fields=FIELD, is_near=is_near), keeps_fields=True)
        return claims

    left = Own(RECORDS[:9], number=1, fields=FIELD)
    assert removed(RECORDS[30]).are_known  # it left our set and is still stored
    assert removed(RECORDS[30]).about(RECORDS[9]) == Advertisement(RECORDS[9], FIELD)
    assert not removed().are_known
    own, more = SetHandle(1, 9), bare_claims(RECORDS[20:21])
    told = [*RECORDS[:10], RECORDS[20]]
    change = TakeChange(own=own, added=more, removed=(), sent=(), told=sums(told))
    assert removed(RECORDS[30]).take_change(change, left, KEY).agrees
    assert not removed().take_change(change, left, KEY).agrees
    withdrawn = removed()
    change = TakeChange(own=own, added=more, removed=(RECORDS[9],), sent=(), told=sums([*RECORDS[:9], RECORDS[20]]))
    assert withdrawn.take_change(change, left, KEY).agrees
    listed, compared = removed(), removed()
    listed.take(whole(RECORDS[:10]))
    compared.take_difference(left, [], bare_claims(RECORDS[9:10]), sums(RECORDS[:10]), sums(RECORDS[:9]), KEY)
    assert withdrawn.are_known
    assert listed.are_known
    assert compared.are_known
    again = removed()
    again.follow(Own(RECORDS[:10], number=2, fields=FIELD), keeps_fields=True)
    assert again.are_known is is_near  # it was put back, and what both have is read off our facts


@pytest.mark.clause("070-BASE-02")
def test_a_change_is_taken_over_if_it_adds_up() -> None:
    own = Own(RECORDS[:10])
    for start in (like(own, RECORDS[:2], RECORDS[20:22]), of_peer([*RECORDS[2:10], *RECORDS[20:22]])):
        now = [*RECORDS[0:1], *RECORDS[3:10], RECORDS[21], RECORDS[25]]

        def change(
            claims: PeerClaims = start,
            added: Sequence[str] = (RECORDS[25],),
            removed: Sequence[str] = (RECORDS[2], RECORDS[20]),
            sent: Sequence[str] = (RECORDS[0], RECORDS[3], RECORDS[25], RECORDS[35]),
            told: Sequence[str] = now,
        ) -> tuple[bool, int, bool]:
            wanted = TakeChange(
                own=SetHandle(0, 10), added=bare_claims(added), removed=removed, sent=sent, told=sums(told)
            )
            taken = claims.take_change(wanted, own, KEY)
            return taken.agrees, taken.count, taken.changed

        before = set(start.among(RECORDS))
        for agrees, _, _ in (
            change(removed=(RECORDS[2],)),
            change(removed=(RECORDS[2], RECORDS[20], RECORDS[30])),
            change(removed=(RECORDS[2], RECORDS[20], RECORDS[25])),
            change(added=(RECORDS[3], RECORDS[25])),
            change(added=()),
            change(told=RECORDS),
            change(sent=()),
        ):
            assert not agrees
            assert set(start.among(RECORDS)) == before
        assert change() == (True, 10, True)
        assert set(start.among(RECORDS)) == set(now)
        assert start.is_measured
        assert change(added=(), removed=(), sent=()) == (True, 10, False)
        # what was sent and did not stay is no part of the sum
        assert change(added=(), removed=(), sent=(RECORDS[1],)) == (True, 10, False)
        assert change(added=(), removed=(), sent=(RECORDS[1],), told=[*now, RECORDS[1]]) == (True, 11, True)
        assert change(added=(), removed=(RECORDS[1],), sent=()) == (True, 10, True)
        assert sorted(claim.hash for claim in start.listing()) == sorted(now)


def test_a_likeness_counts_and_measures() -> None:
    alike = RelativeClaims(Own(RECORDS[:10]), RECORDS[:2], bare_claims(RECORDS[20:23]))
    assert len(alike) == 11
    found = alike.measure(KEY)
    assert found is not None
    assert found.tolist() == sums([*RECORDS[2:10], *RECORDS[20:23]]).tolist()
    assert RelativeClaims(Own(RECORDS[:10]), ["X.00.H4"], []).measure(KEY) is None
    assert RelativeClaims(Own(RECORDS[:10]), [], [Advertisement("X.00.H4")]).measure(KEY) is None
    assert RelativeClaims(Own([]), [], bare_claims(RECORDS[:1])).among(RECORDS[:2]) == RECORDS[:1]
    assert measure_of(["X.00.H4"], KEY) is None
    assert not adds_up(sums([]), ["X.00.H4"], [], sums([]), KEY)
    assert not adds_up(sums([]), [], ["X.00.H4"], sums([]), KEY)
    assert adds_up(sums(RECORDS[:2]), RECORDS[:1], RECORDS[2:3], sums(RECORDS[1:3]), KEY)
    ours = [Advertisement(RECORDS[0], FIELD), Advertisement(RECORDS[1])]
    assert as_theirs(ours, SOURCE, 1024) == ours
    assert as_theirs(ours, SOURCE, 20) == bare_claims(RECORDS[:2])


MIXED = sorted(letter + record[1:] for record in RECORDS[:4] for letter in "BPS")


@pytest.mark.parametrize("listed", [RECORDS, MIXED])
@pytest.mark.parametrize("missing", [0, 1, 5])
@pytest.mark.parametrize("more", [0, 2])
def test_a_likeness_follows_what_came_of_a_first_listing(listed: list[str], missing: int, more: int) -> None:
    """All of it, some of it, and with it what the peer does not claim."""
    others = [record for record in (record_id(number) for number in range(900, 900 + more)) if record not in listed]
    alike = RelativeClaims(Own([]), [], bare_claims(listed))
    held = sorted([*listed[missing:], *others])
    follow(alike, Own(held, number=1))
    assert list(alike.foreign) == listed[:missing]
    assert alike.absent == set(others)
    assert alike.among([*listed, *others]) == listed
    assert len(alike) == len(listed)
    follow(alike, Own(sorted([*listed, *others]), number=2))
    assert (dict(alike.foreign), alike.absent) == ({}, set(others))


# --- partitions -------------------------------------------------------------------------------------------------------


def crowded(count: int) -> list[str]:
    """Records of one starting partition."""
    return sorted(RecordHash.of("B", b"\0\0" + digest(str(number).encode())[2:]) for number in range(count))


def offered(records: Sequence[str]) -> list[Partition]:
    held = AdvertisementSet(1024)
    held.put_all(bare_claims(records))
    return held.summaries(SOURCE)


def listing_of(records: Sequence[str]) -> AdvertisementSet:
    held = AdvertisementSet(1024)
    held.put_all(bare_claims(records))
    return held


def reconciled(claims: PeerClaims, theirs: Sequence[str], own: Sequence[str]) -> tuple[dict[str, int], Call, bool]:
    call = Call()
    found = claims.reconcile(Reconcile(own=SetHandle(0, 0), offered=offered(theirs)), listing_of(own), call)
    assert found.count == len(claims)
    return {partition.prefix: known for partition, known in found.unknown.items()}, call, found.changed


@pytest.mark.clause("050-PART-14", "050-SEND-02", "050-LIST-09")
def test_partitions_that_can_be_named_are_not_asked_for() -> None:
    many = crowded(12)
    for held, own in ((many, []), ([], many), (many[:3], many), ([*many, RECORDS[3]], [])):
        claims = of_peer(held)
        unknown, _, changed = reconciled(claims, many, own)
        assert unknown == {}
        assert changed is (sorted(held) != many)
        assert claims.listing() == bare_claims(many)
    assert reconciled(of_peer(many[:3]), many, many[:5])[0] == {"00": 5}
    assert reconciled(of_peer(many[:5]), many, many[:3])[0] == {"00": 5}
    assert reconciled(of_peer([]), many, [])[0] == {"00": 0}


def test_a_partition_without_one_record_is_guessed_within_bounds() -> None:
    many = crowded(12)
    theirs = [one for one in many if one != many[3]]
    claims = of_peer(many)
    unknown, call, _ = reconciled(claims, theirs, [])
    assert unknown == {}
    assert claims.listing() == bare_claims(theirs)
    assert call.rows % 12 == 0
    assert 12 <= call.rows <= 12 * 12
    stranger = [*theirs[:-1], *(one for one in crowded(13) if one not in many)]
    unknown, call, _ = reconciled(of_peer(many), stranger, [])
    assert (unknown, call.rows) == ({"00": 12}, 144)  # every one was tried
    for name, most, is_tried in (
        ("guessed_roots", 12, True), ("guessed_roots", 11, False),
        ("guessed_rows", 144, True), ("guessed_rows", 143, False),
    ):  # fmt: skip
        unknown, call, _ = reconciled(of_peer(many, **{name: most}), theirs, [])
        assert (unknown == {}) is is_tried
        assert bool(call.rows) is is_tried
    # what was tried in vain is gone for the call: two partitions, and enough for one
    other = sorted(RecordHash.of("B", b"\xff\xff" + digest(str(n).encode())[2:]) for n in range(12))
    bad = [*stranger, *other[:10], RecordHash.of("B", b"\xff\xff" + bytes(30))]
    for name, most in (("guessed_roots", 23), ("guessed_rows", 287)):
        assert reconciled(of_peer([*many, *other], **{name: most}), bad, [])[1].rows == 144


def test_roots_of_ours_are_worked_out_at_once_where_counts_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def work_out(parts: dict[str, list[Advertisement]], source: str, most: int) -> list[Partition]:
        asked.append(sorted(parts))
        return summarise(parts, source, most)

    many = crowded(5)
    claims = PeerClaims(SOURCE, 1024, work_out)  # type: ignore[arg-type]
    call = Call()
    theirs = [*many, *RECORDS[:2]]
    own = listing_of([*many, RECORDS[0]])
    claims.reconcile(Reconcile(own=SetHandle(0, 0), offered=offered(theirs)), own, call)
    assert asked == [sorted({"00", RECORDS[0][2:4]})]
    assert call.rows == 6


@pytest.mark.clause("050-PART-15", "050-PART-16")
def test_what_is_listed_is_what_was_promised() -> None:
    many = crowded(5)
    (promised,) = offered(many)

    def take(claims: Sequence[str], *listed: Partition, offers: Sequence[Partition] = ()) -> PeerClaims:
        held = PeerClaims(SOURCE, 1024)
        wanted = Reconcile(own=SetHandle(0, 0), offered=offers, parents=[], listed=listed, claims=bare_claims(claims))
        held.reconcile(wanted, listing_of([]), Call())
        return held

    assert take(many, promised).listing() == bare_claims(many)
    for claims, listed in ((many[:4], [promised]), ([*many, RECORDS[0]], [promised]), (many, []), ([], [promised])):
        with pytest.raises(ListingMismatch):
            take(claims, *listed)
    prefix = many[0][2:5]
    inside = [one for one in many if one[2:5] == prefix]
    (child,) = summarise({prefix: bare_claims(inside)}, SOURCE, 1024)
    both = take([RECORDS[0], *inside], child, *offered([RECORDS[0]]))
    assert both.listing() == sorted(bare_claims([RECORDS[0], *inside]))


@pytest.mark.clause("050-LIST-09")
def test_what_is_not_summarised_is_gone() -> None:
    many = crowded(8)
    claims = of_peer([*many, *RECORDS[:2]])
    reconciled(claims, RECORDS[:2], [])
    assert claims.listing() == bare_claims(RECORDS[:2])
    below = of_peer([*many, *RECORDS[:2]])
    kept = sorted({one[2:5] for one in many})[0]
    child = summarise({kept: bare_claims([one for one in many if one[2:5] == kept])}, SOURCE, 1024)
    below.take_changes()
    below.reconcile(Reconcile(own=SetHandle(0, 0), offered=child, parents=["00"]), listing_of([]), Call())
    left = [*[one for one in many if one[2:5] == kept], *RECORDS[:2]]
    assert below.listing() == sorted(bare_claims(left))
    assert sorted(below.take_changes().removed) == bare_claims([one for one in many if one[2:5] != kept])


# --- summaries of 070 -------------------------------------------------------------------------------------------------

SUMS = ("2", "0" * 22, "0" * 64)
KEYED = b64a.encode(bytes(16))


@pytest.mark.clause("070-FACT-02", "070-ADV-03")
def test_a_summary_is_one_of_each_and_of_one_count() -> None:
    root, summed = Fact(DIFFERENCE_ROOT, ("2", KEYED)), Fact(DIFFERENCE_SUMMARY, SUMS)
    gone = Fact(DIFFERENCE_WITHDRAWN, (RECORDS[0],))
    assert read_summary([]) is None
    found = read_summary([root])
    assert found is not None
    assert (found.count, found.root, found.sums, list(found.withdrawn)) == (2, bytes(16), None, [])
    found = read_summary([gone, summed])
    assert found is not None
    assert (found.count, found.root, found.withdrawn) == (2, None, [RECORDS[0]])
    found = read_summary([summed, root])
    assert found is not None
    assert found.sums is not None
    assert int(found.sums[0]) == 2
    for facts, said in (
        ([gone], "records withdrawn without a summary"),
        ([root, root], "two summaries"),
        ([summed, summed], "two summaries"),
        ([Fact(DIFFERENCE_ROOT, ("3", KEYED)), summed], "a root and sums of different counts"),
        ([root, Fact(DIFFERENCE_WITHDRAWN, ("X",))], "not a record id: 'X'"),
        ([Fact(DIFFERENCE_ROOT, ("03", KEYED))], "malformed count of a difference (found '03')"),
        ([Fact(DIFFERENCE_ROOT, ("3", ROOT))], f"malformed text of 16 bytes of a difference (found '{ROOT}')"),
    ):
        assert reason_of(lambda facts=facts: read_summary(facts)) == said  # type: ignore[misc]


def test_a_word_that_stands_alone_stands_alone() -> None:
    assert only([DROP], DROP, others=False)
    assert not only([ASK], DROP, others=False)
    assert not only([], DROP, others=True)
    for facts, others in (([DROP, ASK], False), ([DROP], True), ([DROP, DROP], False)):
        assert reason_of(lambda facts=facts, others=others: only(facts, DROP, others)) == (  # type: ignore[misc]
            "DifferenceDrop beside other lines"
        )


def test_our_summary_says_what_was_measured() -> None:
    told = [fact.predicate for fact in summary_facts(Measured(count=2, root=bytes(16), measured=None))]
    assert told == [DIFFERENCE_ROOT]
    both = Measured(count=2, root=None, measured=sums(RECORDS[:2]), removed=RECORDS[5:7])
    assert [fact.predicate for fact in summary_facts(both)] == [DIFFERENCE_WITHDRAWN] * 2 + [DIFFERENCE_SUMMARY]
