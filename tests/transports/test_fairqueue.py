"""Who is next: against a plain model, and what is remembered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.transports.fairqueue import FairQueue

ACCOUNTS = st.sampled_from("abcd")


@given(st.lists(st.tuples(ACCOUNTS, st.floats(0.001, 10)), max_size=60), st.integers(1, 5))
def test_everything_that_waits_has_its_turn_once_and_in_the_order_of_its_account(
    moves: list[tuple[str, float]], every: int
) -> None:
    queue: FairQueue[int] = FairQueue()
    taken: list[tuple[object, int]] = []
    for number, (account, cost) in enumerate(moves):
        queue.put(account, number)
        if number % every == 0 and (found := queue.take()) is not None:
            taken.append(found)
            queue.charge(found[0], cost)
    while (found := queue.take()) is not None:
        taken.append(found)
    assert sorted(number for _, number in taken) == list(range(len(moves)))
    for account in "abcd":
        own = [number for found, number in taken if found == account]
        assert own == [number for number, (other, _) in enumerate(moves) if other == account]
    assert not queue
    assert len(queue) == 0


@given(st.lists(st.floats(0.01, 1.0), min_size=20, max_size=60))
def test_accounts_that_always_wait_get_equal_shares(costs: list[float]) -> None:
    queue: FairQueue[int] = FairQueue()
    used = dict.fromkeys("ab", 0.0)
    for account in "ab":
        queue.put(account, 0)
    for cost in costs:
        found = queue.take()
        assert found is not None
        account = str(found[0])
        used[account] += cost
        queue.charge(account, cost)
        queue.put(account, 0)
    assert abs(used["a"] - used["b"]) <= max(costs) + 1e-9


def test_who_is_served_while_nobody_waits_is_level_with_whoever_comes_then() -> None:
    queue: FairQueue[str] = FairQueue()
    for _ in range(100):
        queue.pass_by("steady")
        queue.charge("steady", 1.0)
    for account in ("new", "newer", "steady"):
        queue.put(account, account[0])
    served = []
    while (found := queue.take()) is not None:
        served.append(found[0])
        queue.charge(found[0], 1.0)
    assert served == ["new", "newer", "steady"]
    queue.charge("new", 1.001)
    for account in ("new", "steady"):
        queue.put(account, account[0])
    assert queue.take() == ("steady", "s")  # it was at most one second ahead


def test_an_account_that_was_away_for_days_is_level_and_not_behind_every_newcomer() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.charge("steady", 1000.0)
    queue.put("steady", "s")
    assert queue.take() == ("steady", "s")  # the level is its use now
    queue.put("new", "n")
    queue.charge("new", 1.0)
    queue.put("steady", "s")
    assert queue.take() == ("steady", "s")


def test_who_is_passed_over_keeps_its_place_and_who_withdraws_leaves_none() -> None:
    queue: FairQueue[int] = FairQueue()
    queue.put("heavy", 1)
    queue.put("light", 2)
    assert queue.take(lambda account: account == "light") == ("light", 2)
    assert queue.take(lambda account: account == "light") is None
    assert queue.first() == 1
    queue.withdraw("heavy", 1)
    queue.withdraw("heavy", 1)
    assert not queue
    assert queue.take() is None


def test_what_is_remembered_is_bounded_however_many_accounts_come() -> None:
    queue: FairQueue[int] = FairQueue(max_remembered=100)
    queue.put("waits", 0)
    for number in range(10_000):
        queue.charge(number, 1.0 + number)
    assert queue.remembered <= 102
    assert queue.take() == ("waits", 0)


@pytest.mark.parametrize("seconds", [0.0, 0.001])
def test_accounts_without_number_are_forgotten_and_who_used_most_is_not(seconds: float) -> None:
    queue: FairQueue[str] = FairQueue()
    queue.charge("greedy", 5.0)
    for number in range(20_000):
        queue.charge(number, seconds)
    assert queue.remembered <= 4096
    queue.put("greedy", "g")
    queue.put("new", "n")
    assert queue.take() == ("new", "n")
