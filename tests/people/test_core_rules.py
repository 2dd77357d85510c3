"""The core rules of people, one situation after the other (080)."""

from __future__ import annotations

import random

import pytest

from people.world import (
    Seen,
    admin,
    device,
    dismissed,
    invite,
    left,
    member,
    note,
    succession,
    v,
    withdrawn,
)

EVERYBODY = ("anna", "bob", "carl", "dora", "eve")


def admins(*records: object) -> set[str]:
    return Seen(records).names("Admin", EVERYBODY)  # type: ignore[arg-type]


def members(*records: object) -> set[str]:
    return Seen(records).names("Member", EVERYBODY)  # type: ignore[arg-type]


@pytest.mark.clause("080-ADMIN-01")
def test_the_founder_is_an_admin_and_lets_others_be_admins() -> None:
    assert admins() == {"anna"}
    assert admins(admin("bob", "anna", 1), admin("carl", "bob", 2)) == {"anna", "bob", "carl"}
    assert admins(admin("bob", "bob", 1), admin("carl", "eve", 2)) == {"anna"}


@pytest.mark.clause("080-ADMIN-02")
def test_an_admin_is_dismissed_by_the_founder_by_who_appointed_it_and_by_itself_and_by_nobody_else() -> None:
    chain = [admin("bob", "anna", 1), admin("carl", "anna", 1), admin("dora", "bob", 2)]
    assert admins(*chain) == {"anna", "bob", "carl", "dora"}
    assert admins(*chain, dismissed("dora", "bob", 3)) == {"anna", "bob", "carl"}
    assert admins(*chain, dismissed("dora", "anna", 3)) == {"anna", "bob", "carl"}
    assert admins(*chain, dismissed("dora", "dora", 3)) == {"anna", "bob", "carl"}
    assert admins(*chain, dismissed("dora", "carl", 3)) == {"anna", "bob", "carl", "dora"}
    assert admins(*chain, dismissed("bob", "dora", 3)) == {"anna", "bob", "carl", "dora"}
    # who adds a grant of its own to somebody else's cannot take back more than that
    assert "bob" in admins(*chain, admin("bob", "dora", 3), dismissed("bob", "dora", 4))
    assert admins(*chain, dismissed("dora", "bob", 3), admin("dora", "bob", 4)) == {"anna", "bob", "carl", "dora"}


@pytest.mark.clause("080-ADMIN-03")
def test_what_a_dismissed_admin_did_counts_as_far_as_its_dismissal_says_so() -> None:
    bob, dora = admin("bob", "anna", 1), admin("dora", "bob", 2)
    let_in = member("eve", "bob", 2)
    assert admins(bob, dora, dismissed("bob", "anna", 5)) == {"anna"}
    kept = dismissed("bob", "anna", 5, dora, let_in)
    seen = Seen([bob, dora, let_in, kept])
    assert seen.names("Admin", EVERYBODY) == {"anna", "dora"}
    assert seen.names("Member", EVERYBODY) == {"anna", "dora", "eve"}
    # backdated or not, nothing that bob signs afterwards counts, nor does he take back what stands
    late = [admin("carl", "bob", 2), member("carl", "bob", 2), dismissed("dora", "bob", 6), left("eve", "bob", 6)]
    seen = Seen([bob, dora, let_in, kept, *late])
    assert seen.names("Admin", EVERYBODY) == {"anna", "dora"}
    assert seen.names("Member", EVERYBODY) == {"anna", "dora", "eve"}


@pytest.mark.clause("080-MEMBER-01")
def test_admins_let_members_in_and_nobody_else_does() -> None:
    assert members(member("bob", "anna", 1), member("carl", "bob", 2), member("eve", "eve", 3)) == {"anna", "bob"}


@pytest.mark.clause("080-MEMBER-02")
def test_a_reader_reads_and_what_it_writes_does_not_count() -> None:
    seen = Seen([member("bob", "anna", 1, role="reader"), member("carl", "anna", 1)])
    assert seen.names("Member", EVERYBODY) == {"anna", "bob", "carl"}
    assert not seen.counts(note("bob", 2))
    assert seen.counts(note("carl", 2))
    again = Seen([member("bob", "anna", 1, role="reader"), member("bob", "anna", 2)])
    assert again.counts(note("bob", 2))


@pytest.mark.clause("080-LEFT-01")
def test_what_was_there_before_somebody_left_stands_and_nothing_else_of_that_key_comes_in() -> None:
    early, late = note("bob", 2, "early"), note("bob", 6, "late")
    backdated = note("bob", 2, "backdated")
    bob = member("bob", "anna", 1)
    before = Seen([bob, early])
    assert before.counts(early)
    assert before.counts(backdated)
    seen = Seen([bob, early, left("bob", "anna", 5, early)])
    assert seen.names("Member", EVERYBODY) == {"anna"}
    assert seen.counts(early)
    assert not seen.counts(late)
    assert not seen.counts(backdated)
    own = Seen([bob, early, left("bob", "bob", 5, early)])
    assert own.counts(early)
    assert not own.counts(late)
    assert own.names("Left", EVERYBODY) == {"bob"}


@pytest.mark.clause("080-LEFT-02")
def test_somebody_put_out_can_name_nothing_more_that_stands() -> None:
    early, spam = note("bob", 2, "early"), note("bob", 2, "spam")
    records = [member("bob", "anna", 1), early, left("bob", "anna", 5, early), left("bob", "bob", 6, early, spam)]
    seen = Seen([*records, spam])
    assert seen.counts(early)
    assert not seen.counts(spam)
    assert not Seen([*records, left("bob", "carl", 7, spam)]).counts(spam)


@pytest.mark.clause("080-LEFT-03")
def test_who_comes_back_acts_from_then_on_and_what_stood_still_stands() -> None:
    early, between, after = note("bob", 2, "early"), note("bob", 6, "between"), note("bob", 9, "after")
    records = [member("bob", "anna", 1), early, left("bob", "anna", 5, early), member("bob", "anna", 8)]
    seen = Seen(records)
    assert seen.names("Member", EVERYBODY) == {"anna", "bob"}
    assert seen.counts(early)
    assert seen.counts(after)
    assert not seen.counts(between)
    gone = Seen([*records, left("bob", "anna", 9, early)])
    assert gone.names("Member", EVERYBODY) == {"anna"}
    assert gone.counts(early)
    assert not gone.counts(after)


@pytest.mark.clause("080-INVITE-01")
def test_the_first_that_sign_with_the_one_time_key_are_let_in() -> None:
    bob, carl = member("bob", "once", 11), member("carl", "once", 12)
    assert members(invite("once", "anna", 10), bob, carl) == {"anna", "bob"}
    assert members(invite("once", "anna", 10, uses=2), bob, carl) == {"anna", "bob", "carl"}
    assert members(invite("once", "bob", 10), bob, carl) == {"anna"}
    # one key that signs twice takes one place
    again = member("bob", "once", 13)
    assert members(invite("once", "anna", 10, uses=2), bob, again, carl) == {"anna", "bob", "carl"}


@pytest.mark.clause("080-INVITE-02")
def test_an_invitation_admits_within_its_time_and_with_its_role_only() -> None:
    opened = invite("once", "anna", 10, until=20, uses=9)
    early, in_time, late = member("bob", "once", 9), member("carl", "once", 10), member("dora", "once", 20)
    other_role = member("eve", "once", 12, role="reader")
    assert members(opened, early, in_time, late, other_role) == {"anna", "carl"}


@pytest.mark.clause("080-INVITE-03")
def test_a_withdrawn_invitation_admits_whom_its_withdrawal_names() -> None:
    opened, bob, carl = invite("once", "anna", 10, uses=9), member("bob", "once", 11), member("carl", "once", 11)
    assert members(opened, bob, carl, withdrawn("once", "anna", 12, bob)) == {"anna", "bob"}
    assert members(opened, bob, carl, withdrawn("once", "eve", 12)) == {"anna", "bob", "carl"}
    # it is not opened again
    assert members(opened, bob, withdrawn("once", "anna", 12), invite("once", "anna", 14), bob) == {"anna"}


@pytest.mark.clause("080-INVITE-04")
def test_an_invitation_that_is_older_than_leaving_does_not_bring_back() -> None:
    opened, bob = invite("once", "anna", 10, uses=9), member("bob", "once", 11)
    out = left("bob", "anna", 15)
    assert members(opened, bob, out, member("bob", "once", 16)) == {"anna"}
    assert members(opened, bob, out, invite("new", "anna", 16), member("bob", "new", 17)) == {"anna", "bob"}


@pytest.mark.clause("080-DEVICE-01")
def test_a_device_acts_for_its_person_and_only_the_first_key_or_an_admin_names_one() -> None:
    bob = member("bob", "anna", 1)
    seen = Seen([bob, device("bobs-phone", "bob", "bob", 2), device("eve", "bob", "eve", 2)])
    assert seen.counts(note("bobs-phone", 3))
    assert not seen.counts(note("eve", 3))
    assert not Seen([device("bobs-phone", "bob", "bob", 2)]).counts(note("bobs-phone", 3))
    by_device = Seen([bob, device("bobs-phone", "bob", "bob", 2), device("eve", "bob", "bobs-phone", 3)])
    assert not by_device.counts(note("eve", 4))


@pytest.mark.clause("080-DEVICE-02")
def test_losing_a_device_costs_that_device() -> None:
    bob, phone = member("bob", "anna", 1), device("bobs-phone", "bob", "bob", 2)
    mine = note("bobs-phone", 3)
    lost = left("bobs-phone", "bob", 5, mine)
    seen = Seen([bob, phone, lost])
    assert seen.counts(mine)
    assert seen.counts(note("bob", 6))
    assert not seen.counts(note("bobs-phone", 6))
    assert not Seen([bob, phone, left("bobs-phone", "carl", 5)]).names("Left", ("bobs-phone",))
    # the first key is lost: its devices go on, because the record that names them stands
    first = Seen([bob, phone, left("bob", "anna", 5, phone)])
    assert first.counts(note("bobs-phone", 6))
    assert not first.counts(note("bob", 6))
    everything = Seen([bob, phone, left("bob", "anna", 5)])
    assert not everything.counts(note("bobs-phone", 6))


@pytest.mark.clause("080-DEVICE-03")
def test_a_key_that_an_admin_put_out_is_not_brought_back_as_a_device() -> None:
    records = [member("bob", "anna", 1), member("eve", "anna", 1), left("eve", "anna", 5)]
    assert not Seen([*records, device("eve", "bob", "bob", 6)]).counts(note("eve", 7))
    assert Seen([*records, device("eve", "bob", "anna", 6)]).counts(note("eve", 7))


@pytest.mark.clause("080-ROTATE-01")
def test_the_successor_that_a_key_committed_to_takes_its_place() -> None:
    bob = member("bob", "anna", 1)
    commits, named = succession("bob", "bob2", 1)
    mine = note("bob", 2)
    assert Seen([bob, commits]).counts(note("bob", 3))
    seen = Seen([bob, commits, named, mine, left("bob", "bob2", 5, mine)])
    assert seen.counts(mine)
    assert seen.counts(note("bob2", 6))
    assert not seen.counts(note("bob", 6))
    assert "bob2" in seen.names("Member", ("bob", "bob2"))
    assert "bob" not in seen.names("Member", ("bob",))
    # a thief of the new key's public half, or of the old key, has not the record that was committed to
    forged_commit, forged = succession("bob", "eve", 1)
    assert not Seen([bob, commits, forged]).counts(note("eve", 6))
    thief = Seen([bob, commits, forged_commit, forged])
    assert not thief.counts(note("eve", 6))
    assert thief.counts(note("bob", 6))


@pytest.mark.clause("080-ROTATE-02")
def test_the_founder_and_admins_hand_their_place_on() -> None:
    commits, named = succession("anna", "anna2", 1)
    bob, carl = admin("bob", "anna", 1), member("carl", "anna", 1)
    everyone = (*EVERYBODY, "anna2")
    seen = Seen([commits, named, bob, carl])
    assert seen.names("Admin", everyone) == {"anna2"}  # until it says what stands, nothing of the old key does
    kept = Seen([commits, named, bob, carl, dismissed("anna", "anna2", 5, bob, carl)])
    assert kept.names("Admin", everyone) == {"anna2", "bob"}
    assert kept.names("Member", everyone) == {"anna2", "bob", "carl"}
    stolen = [admin("eve", "anna", 2), dismissed("bob", "anna", 6)]
    again = Seen([commits, named, bob, carl, dismissed("anna", "anna2", 5, bob, carl), *stolen])
    assert again.names("Admin", everyone) == {"anna2", "bob"}


@pytest.mark.clause("080-ROTATE-04")
def test_an_admin_that_hands_its_place_on_twice_keeps_what_it_did_and_is_one_person() -> None:
    first, to_second = succession("bob", "bob2", 1)
    second, to_third = succession("bob2", "bob3", 2)
    office, carl, dora = admin("bob", "anna", 1), member("carl", "bob", 2), admin("dora", "bob", 2)
    mine = note("bob", 3)
    once = [
        office, first, to_second, carl, dora, mine,
        left("bob", "bob2", 5, mine), out := dismissed("bob", "bob2", 5, carl, dora),
    ]  # fmt: skip
    by_second = member("eve", "bob2", 6)
    twice = [
        *once, second, to_third, by_second,
        left("bob2", "bob3", 8, once[6]), dismissed("bob2", "bob3", 8, by_second, out, once[6]),
    ]  # fmt: skip
    everyone = (*EVERYBODY, "bob2", "bob3")
    for records, now, let_in in ((once, "bob2", set()), (twice, "bob3", {"eve"})):
        seen = Seen(records)
        assert seen.names("Admin", everyone) == {"anna", "dora", now}
        assert seen.names("Member", everyone) == {"anna", "carl", "dora", now} | let_in
        assert [row for row in seen.rows("Key", 2) if row[0] == v(now)] == [(v(now), v("bob"))]
        assert seen.counts(mine)
        assert not seen.counts(note("bob", 9))
    # the end of the office names any key of the line, and takes the membership of nobody
    in_club = member("bob", "anna", 1)
    for named in ("bob", "bob3"):
        seen = Seen([*twice, in_club, dismissed(named, "anna", 9)])
        assert "bob3" not in seen.names("Admin", everyone)
        assert "bob3" in seen.names("Member", everyone)


@pytest.mark.clause("080-ROTATE-03")
def test_who_left_does_not_come_back_by_a_successor() -> None:
    bob = member("bob", "anna", 1)
    commits, named = succession("bob", "bob2", 1)
    seen = Seen([bob, commits, named, left("bob", "anna", 5)])
    assert seen.names("Member", ("bob", "bob2")) == set()


def test_the_order_in_which_records_came_changes_nothing() -> None:
    commits, named = succession("carl", "carl2", 3)
    records = [
        admin("bob", "anna", 1), member("carl", "bob", 2), member("dora", "once", 12), invite("once", "bob", 10),
        commits, named, left("carl", "carl2", 20), device("phone", "dora", "dora", 13), left("dora", "anna", 30),
    ]  # fmt: skip
    wanted = Seen(records).rows("Author", 2)
    assert {who for who, _ in wanted} >= {v("anna"), v("bob"), v("carl2")}
    for seed in range(5):
        random.Random(seed).shuffle(records)
        assert Seen([*records, *records[:3]]).rows("Author", 2) == wanted
