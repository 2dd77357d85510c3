"""Which record a coordinate means, whatever others put there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lace as api
from lace.cli.app import app
from lace.limits import SECOND_NS
from lace.notation.identifiers import RecordHash
from lace.notation.tai import TAI
from lace.porcelain.tips import Tip, TipPolicy
from lace.records.keys import SigningKey
from lace.store.base import Entry, StoreRecordId

NOW = TAI.of_unix_ns(1_790_000_000 * SECOND_NS)
MINE, OTHER = SigningKey(bytes(31) + b"\x05"), SigningKey(bytes(31) + b"\x07")
PLACE = {"group": "u", "app": "ding", "name": "x"}


@dataclass(frozen=True)
class StoppedClock:
    def tai(self) -> TAI:
        return NOW

    def monotonic_ns(self) -> int:
        return 0


def opened() -> api.Lace:
    return api.open(":memory:", clock=StoppedClock())


def put(lace: api.Lace, content: bytes, *, days: float, sign: SigningKey | None = None) -> None:
    """A record of somebody, dated so many days from now; it comes like one of a peer."""
    elsewhere = api.open(":memory:", clock=StoppedClock())
    tai = str(NOW.plus_ns(int(days * 86_400) * SECOND_NS))
    record = elsewhere.put(content, tai=tai, sign=sign, **PLACE)
    lace.put_stored(elsewhere.store.get(record))


def test_the_newest_is_the_tip_where_nobody_signed() -> None:
    with opened() as lace:
        put(lace, b"old", days=-2)
        put(lace, b"new", days=-1)
        assert lace.get("//u//ding//x") == b"new"
        assert lace.tip("//u//ding//x").notice() == ""


@pytest.mark.parametrize("sign", [None, OTHER])
def test_a_stranger_does_not_displace_what_a_known_key_signed(sign: SigningKey | None) -> None:
    with opened() as lace:
        lace.put(b"mine", sign=MINE, tai=str(NOW.plus_ns(-2 * SECOND_NS)), **PLACE)
        put(lace, b"theirs", days=0, sign=sign)
        assert lace.get("//u//ding//x") == b"mine"
        assert "1 newer record stands here" in lace.tip("//u//ding//x").notice()
        assert [row["Signed-By"] for row in lace.list("//u", tips=True)] == [MINE.verifier]
        assert len(list(lace.list("//u"))) == 2


def test_one_known_key_displaces_another_and_a_forgotten_one_counts_no_more() -> None:
    with opened() as lace:
        lace.put(b"mine", sign=MINE, tai=str(NOW.plus_ns(-2 * SECOND_NS)), **PLACE)
        put(lace, b"theirs", days=0, sign=OTHER)
        lace.know_key(OTHER.verifier)
        assert lace.get("//u//ding//x") == b"theirs"
        lace.know_key(OTHER.verifier, forget=True)
        assert lace.get("//u//ding//x") == b"mine"
        lace.know_key(MINE.verifier, forget=True)
        assert lace.get("//u//ding//x") == b"theirs"
        assert lace.known_keys() == []


@pytest.mark.parametrize("sign", [None, MINE])
def test_a_record_dated_beyond_the_horizon_is_never_a_tip(sign: SigningKey | None) -> None:
    with opened() as lace:
        put(lace, b"2286", days=9_500 * 10, sign=sign)
        with pytest.raises(api.NotFound, match="nothing is stored"):
            lace.get("//u//ding//x")
        put(lace, b"today", days=0)
        assert lace.get("//u//ding//x") == b"today"
        put(lace, b"in an hour", days=1 / 24)  # a clock that runs ahead
        assert lace.get("//u//ding//x") == b"in an hour"


def days_from_now(days: int) -> TAI:
    return NOW.plus_ns(days * 86_400 * SECOND_NS)


entries = st.lists(
    st.tuples(st.integers(-5, 5), st.sampled_from([None, MINE.verifier, OTHER.verifier])), max_size=6
).map(
    lambda rows: [
        Entry(
            "u", "a", "n", str(NOW.plus_ns(days * 86_400 * SECOND_NS)), RecordHash(f"P.{n}"), StoreRecordId(n), who, 0
        )
        for n, (days, who) in enumerate(sorted(rows, key=lambda row: row[0]))
    ]
)


@given(entries, st.booleans())
def test_strangers_who_add_records_never_change_what_a_known_key_made_the_tip(
    versions: list[Entry], is_known: bool
) -> None:
    policy = TipPolicy(lambda: [MINE.verifier] if is_known else [], lambda: NOW, 86_400)
    tip = policy.choose(versions)
    mine = [entry for entry in versions if entry.signer == MINE.verifier]
    alone = policy.choose(mine)
    if is_known and alone is not None:
        assert tip is not None
        assert tip.entry == alone.entry
    assert tip is None or isinstance(tip, Tip)
    if tip is not None:
        assert [tip.entry, *tip.passed_over] == versions[versions.index(tip.entry) :]


@pytest.mark.long
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(-2, 3), st.sampled_from([None, MINE, OTHER])), max_size=6),
    st.sets(st.sampled_from([MINE, OTHER]), max_size=2),
)
def test_a_store_hands_over_no_version_too_few(
    tmp_path: Path, rows: list[tuple[int, SigningKey | None]], known: set[SigningKey]
) -> None:
    path = tmp_path / "tips.lace"
    path.unlink(missing_ok=True)
    with api.open(path, create=True, clock=StoppedClock()) as lace:
        for number, (days, sign) in enumerate(rows):
            put(lace, b"%d" % number, days=days, sign=sign)
        for key in known:
            lace.know_key(key.verifier)
        among_all = lace.choose_tip(lace.store.versions("u", "ding", "x"))
        if among_all is None:
            with pytest.raises(api.NotFound):
                lace.tip("//u//ding//x")
        else:
            assert lace.tip("//u//ding//x") == among_all


def test_a_tip_is_found_without_reading_the_versions_before_it(tmp_path: Path) -> None:
    with api.open(tmp_path / "long.lace", create=True, clock=StoppedClock()) as lace:
        with lace.batch() as batch:
            for number in range(500):
                batch.put(b"%d" % number, tai=f"{1_700_000_000 + number}:000000000", **PLACE)
        lace.know_key(MINE.verifier)  # and it signed none of them
        assert lace.get("//u//ding//x") == b"499"
        assert len(lace.store.latest_versions("u", "ding", "x", until=None, signers=[MINE.verifier])) == 1


def test_get_says_when_it_had_to_choose_and_keys_can_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    path = tmp_path / "x.lace"
    with api.open(path, create=True) as lace:
        lace.put(b"mine", sign=MINE, tai="1700000000:000000000", **PLACE)
        lace.put(b"theirs", tai="1700000001:000000000", **PLACE)
    said = CliRunner().invoke(app, ["get", str(path), "//u//ding//x"])
    assert said.stdout == "mine"
    assert "1 newer record stands here" in said.stderr
    known = CliRunner().invoke(app, ["key", "know", str(path)])
    assert known.stdout.split() == [MINE.verifier]
    CliRunner().invoke(app, ["key", "know", str(path), MINE.verifier, "--forget"])
    assert CliRunner().invoke(app, ["get", str(path), "//u//ding//x"]).stdout == "theirs"
