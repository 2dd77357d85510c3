"""Many signatures at once: the verdicts of one by one, whatever is wrong and wherever it stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidSignature
from lace.records import curve, keys
from lace.records.exact import N, P
from lace.records.keys import SigningKey, verify, verify_batch
from tries import tries

KEYS = [SigningKey(bytes([number]) * 32) for number in (1, 2, 3)]
Task = tuple[bytes, bytes, bytes]


def task(key: int, message: int) -> Task:
    digest = message.to_bytes(32, "big")
    signature = KEYS[key].sign(digest, aux=(message + 1).to_bytes(32, "big"))
    return KEYS[key].verifier.digest, digest, signature


GOOD = [task(number % 3, number) for number in range(40)]
MANY = [task(number % 3, number) for number in range(1100)]


def spoiled(given: Task, how: str, bit: int) -> Task:
    px, message, signature = given

    def flip(data: bytes) -> bytes:
        return bytes(b ^ (1 << bit % 8 if at == bit // 8 % len(data) else 0) for at, b in enumerate(data))

    match how:
        case "verifier":
            return flip(px), message, signature
        case "message":
            return px, flip(message), signature
        case "r":
            return px, message, flip(signature[:32]) + signature[32:]
        case "s":
            return px, message, signature[:32] + flip(signature[32:])
        case "negated s":  # leads to another point than R
            s = (N - int.from_bytes(signature[32:], "big")) % N
            return px, message, signature[:32] + s.to_bytes(32, "big")
        case "s too large":
            return px, message, signature[:32] + N.to_bytes(32, "big")
        case "r too large":
            return px, message, P.to_bytes(32, "big") + signature[32:]
        case "no curve point":
            return (5).to_bytes(32, "big"), message, signature
        case _:
            return px, message, signature[:-1]


FAULTS = ("verifier", "message", "r", "s", "negated s", "s too large", "r too large", "no curve point", "short")


def one_by_one(tasks: list[Task]) -> list[str | None]:
    reasons: list[str | None] = []
    for each in tasks:
        try:
            verify(*each)
            reasons.append(None)
        except InvalidSignature as error:
            reasons.append(error.message)
    return reasons


@pytest.mark.long
@pytest.mark.clause("009-VER-01", "009-VER-02", "009-VER-03", "009-VER-04", "009-VER-06", "009-VER-07")
@tries(40)
@given(
    size=st.sampled_from([1, 30, 127, 128, 300, 1100]),
    first=st.integers(0, len(MANY) - 1),
    faults=st.lists(st.tuples(st.integers(0, 1099), st.sampled_from(FAULTS), st.integers(0, 511)), max_size=3),
)
def test_a_batch_gives_the_verdicts_of_one_by_one(size: int, first: int, faults: list[tuple[int, str, int]]) -> None:
    tasks = [*MANY[first:], *MANY[:first]][:size]
    for at, how, bit in faults:
        tasks[at % len(tasks)] = spoiled(tasks[at % len(tasks)], how, bit)
    assert verify_batch(tasks) == one_by_one(tasks)


def equations(tasks: list[Task]) -> list[curve.Equation]:
    return [
        curve.Equation(px, sig[:32], int.from_bytes(sig[32:], "big"), keys.challenge_scalar(sig[:32], px, message))
        for px, message, sig in tasks
    ]


@pytest.mark.parametrize("good", [GOOD, MANY], ids=["some", "many"])
def test_one_sum_proves_good_signatures_and_none_with_a_bad_one_among_them(good: list[Task]) -> None:
    assert curve.all_hold(equations(good)) is curve.has_library()
    for how in ("message", "r", "s", "negated s", "verifier"):
        for at in (0, len(good) - 1):
            tasks = [spoiled(each, how, 9) if at == number else each for number, each in enumerate(good)]
            assert not curve.all_hold(equations(tasks)), how


@pytest.mark.long
@pytest.mark.parametrize("count", [1, 1100])
def test_each_digit_of_a_coefficient_counts(count: int) -> None:
    """The same single bit in every coefficient. The keys are multiples of each other, so some sums meet at infinity."""
    good = equations(MANY[:count])
    wrong = [*good[:-1], good[-1]._replace(s=(good[-1].s + 1) % N)]
    for bit in range(0, 128, 5):

        def drawn(_: int, bit: int = bit) -> bytes:
            return (1 << bit).to_bytes(16, "big") * count

        assert curve.all_hold(good, drawn) is curve.has_library()
        assert not curve.all_hold(wrong, drawn)


def test_two_faults_that_cancel_without_coefficients_are_found() -> None:
    """s + 1 in one signature and s − 1 in another leave the plain sum as it was."""
    first, second = GOOD[0], GOOD[3]
    moved = [
        (px, message, sig[:32] + ((int.from_bytes(sig[32:], "big") + step) % N).to_bytes(32, "big"))
        for (px, message, sig), step in ((first, 1), (second, -1))
    ]
    tasks = [*moved, *GOOD[4:10]]
    assert not curve.all_hold(equations(tasks))
    assert [reason is None for reason in verify_batch(tasks)] == [False, False] + [True] * 6


def test_without_the_library_each_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve, "_lib", None)
    tasks = [*GOOD[:4], spoiled(GOOD[4], "message", 3)]
    assert [reason is None for reason in verify_batch(tasks)] == [True] * 4 + [False]


def test_good_signatures_of_few_keys_are_one_sum_and_none_is_checked_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    if not curve.has_library():
        pytest.skip("without the library each signature is checked by itself")
    monkeypatch.setattr(keys, "_refusal", None)
    assert verify_batch(MANY[:128]) == [None] * 128


@pytest.mark.parametrize(("signers", "is_summed"), [(1, True), (32, True), (33, False), (128, False)])
def test_a_sum_is_tried_where_each_key_signs_four_times(
    signers: int, is_summed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    summed: list[int] = []
    monkeypatch.setattr(keys, "all_verify", lambda tasks: summed.append(len(tasks)) or True)
    monkeypatch.setattr(keys, "_refusal", lambda combine, px, message, signature: None)
    tasks = [((number % signers).to_bytes(32, "big"), bytes(32), bytes(64)) for number in range(128)]
    assert verify_batch(tasks) == [None] * 128
    assert summed == [128] * is_summed
    summed.clear()
    assert verify_batch(tasks[:127]) == [None] * 127
    assert summed == []
