"""Which record a coordinate means: the same one for everybody who holds the same records."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import lace as api
from inspector.visiting import Visitor
from lace.cli.app import app
from lace.inspector.inspected import open_all
from lace.inspector.serving import inspecting
from lace.limits import HORIZON_S, SECOND_NS
from lace.notation.tai import TAI
from lace.porcelain.exchange import interlace
from lace.records.keys import SigningKey
from lace.records.tip import LOOKED_AT, TipPolicy, choose_tip, newest_by_writer, newest_first, standing
from lace.store.base import Entry
from tries import tries

NOW = TAI.of_unix_ns(1_790_000_000 * SECOND_NS)
MINE, OTHER, THIRD = (SigningKey(bytes(31) + bytes([number])) for number in (5, 7, 9))
PLACE = {"group": "u", "app": "ding", "name": "x"}
HERE = "//u//ding//x"


@dataclass(frozen=True)
class StoppedClock:
    def tai(self) -> TAI:
        return NOW

    def monotonic_ns(self) -> int:
        return 0


def opened(path: str | Path = ":memory:") -> api.Lace:
    return api.open(path, create=path != ":memory:", clock=StoppedClock())


def dated(days: float) -> str:
    return str(NOW.plus_ns(int(days * 86_400) * SECOND_NS))


def put(lace: api.Lace, content: bytes, *, days: float, sign: SigningKey | None = None) -> None:
    """A record of somebody, dated so many days from now; it comes like one of a peer."""
    with opened() as elsewhere:
        record = elsewhere.put(content, tai=dated(days), sign=sign, **PLACE)
        lace.put_stored(elsewhere.store.get(record))


def test_the_newest_is_the_tip_where_nobody_signed() -> None:
    with opened() as lace:
        put(lace, b"old", days=-2)
        put(lace, b"new", days=-1)
        assert lace.get(HERE) == b"new"
        assert list(lace.tip(HERE).notices()) == []


@pytest.mark.parametrize("sign", [None, OTHER])
def test_who_signed_here_moves_no_tip_and_the_other_writer_is_told(sign: SigningKey | None) -> None:
    with opened() as lace:
        lace.put(b"mine", sign=MINE, tai=dated(-1), **PLACE)
        put(lace, b"theirs", days=0, sign=sign)
        for known in ([], [OTHER], [MINE, OTHER], [MINE]):
            for key in (MINE, OTHER):
                lace.know_key(key.verifier, forget=key not in known)
            assert lace.get(HERE) == b"theirs"
            (notice,) = lace.tip(HERE).notices()
            assert notice == (
                f"2 writers have written here; this is the newest version, by {(sign and sign.verifier) or 'unsigned'} "
                f"({dated(0)}); also by {MINE.verifier} ({dated(-1)})"
            )
            (row,) = lace.list("//u", tips=True)
            assert row.is_tip
            assert [entry.signer for entry in row.concurrent] == [MINE.verifier]
        assert [(row.is_tip, len(row.concurrent)) for row in lace.list("//u")] == [(False, 0), (True, 1)]


@pytest.mark.parametrize("sign", [None, MINE])
def test_a_record_dated_beyond_the_horizon_is_never_a_tip(sign: SigningKey | None) -> None:
    with opened() as lace:
        put(lace, b"2286", days=9_500 * 10, sign=sign)
        with pytest.raises(api.NotFound, match="there is no record"):
            lace.get(HERE)
        with pytest.raises(api.NotFound, match="there is no record"):
            lace.tip(HERE)
        assert [row.is_tip for row in lace.list()] == [False]
        put(lace, b"today", days=0)
        assert lace.get(HERE) == b"today"
        (notice,) = lace.tip(HERE).notices()
        assert notice.startswith("1 version is dated too far ahead to be the tip: by ")
        put(lace, b"in an hour", days=1 / 24)  # a clock that runs ahead
        assert lace.get(HERE) == b"in an hour"


def test_a_selector_means_the_newest_within_the_horizon_unless_it_names_an_instant() -> None:
    with opened() as lace:
        put(lace, b"2286", days=9_500 * 10, sign=MINE)
        put(lace, b"today", days=0, sign=MINE)
        for selector in ("/|/seal", f"/|/seal/{MINE.verifier}"):
            assert lace.get(HERE + selector) == b"today"
            assert [lace.get(row.hash) for row in lace.list(HERE + selector, tips=True)] == [b"today"]
        ahead = f"/|/seal/{MINE.verifier}/{dated(9_500 * 10)}"
        assert lace.get(HERE + ahead) == b"2286"
        assert [lace.get(row.hash) for row in lace.list(HERE + ahead, tips=True)] == [b"2286"]


def test_a_tip_is_found_without_reading_the_versions_before_it(tmp_path: Path) -> None:
    with opened(tmp_path / "long.lace") as lace:
        with lace.batch() as batch:
            for number in range(500):
                batch.put(b"%d" % number, tai=f"{1_700_000_000 + number}:000000000", **PLACE)
        read = []
        lace.store.newest_first = _counting(lace.store.newest_first, read)  # type: ignore[method-assign]
        assert lace.get(HERE) == b"499"
        assert len(read) == 1


def _counting(newest: object, read: list[Entry]) -> object:
    def counted(*place: str, until: str | None = None) -> Iterable[Entry]:
        for entry in newest(*place, until=until):  # type: ignore[operator]
            read.append(entry)
            yield entry

    return counted


@pytest.mark.parametrize("count", [LOOKED_AT - 2, LOOKED_AT - 1, LOOKED_AT, LOOKED_AT + 1])
def test_get_and_a_listing_look_equally_far_for_other_writers(tmp_path: Path, count: int) -> None:
    with opened(tmp_path / "long.lace") as lace:
        lace.put(b"first", sign=MINE, tai="1600000000:000000000", **PLACE)
        with lace.batch() as batch:
            for number in range(count):
                batch.put(b"%d" % number, tai=f"{1_700_000_000 + number}:000000000", **PLACE)
        expected = [] if count >= LOOKED_AT else [MINE.verifier]
        assert [entry.signer for entry in lace.tip(HERE).concurrent] == expected
        *_, last = lace.list()
        assert last.is_tip
        assert [entry.signer for entry in last.concurrent] == expected
        assert [row.concurrent for row in lace.list(tips=True)] == [last.concurrent]


# --- one set of records, many holders

WRITERS: list[SigningKey | None] = [None, MINE, OTHER, THIRD]
# The writer, and days from now: ties are frequent, some versions are dated ahead, one lies at the horizon's very end.
VERSIONS = st.lists(
    st.tuples(st.sampled_from(WRITERS), st.sampled_from([-3, -2, -1, 0, 1, 2, 400]), st.sampled_from("xy")), max_size=9
)


@dataclass(frozen=True)
class Holder:
    """Somebody who comes to hold the records in their own way."""

    lace: api.Lace
    path: Path

    def answers(self) -> object:
        """Everything that this holder says about coordinates."""
        rows = [(row.hash, row["Name"], row.is_tip, _told(row.concurrent)) for row in self.lace.list()]
        tips = [(row.hash, _told(row.concurrent)) for row in self.lace.list(tips=True)]
        read = {}
        for name in "xy":
            try:
                place = f"//u//ding//{name}"
                tip = self.lace.tip(place)
                assert self.lace.resolve(place) == tip.entry.hash
                read[name] = (self.lace.get(place), tip.entry.hash, _told(tip.concurrent), _told(tip.passed_over))
            except api.NotFound:
                read[name] = (b"nothing", "", [], [])
        return rows, tips, read


def _told(entries: Sequence[Entry]) -> list[tuple[str | None, str, str]]:
    return [(entry.signer, entry.tai, entry.hash) for entry in entries]


@tries(30)
@given(versions=VERSIONS, removed=st.sets(st.integers(0, 8)), seed=st.integers(0, 2**16))
@pytest.mark.clause("110-VER-09")
def test_the_same_records_give_the_same_answers_to_every_holder(
    tmp_path_factory: pytest.TempPathFactory,
    versions: list[tuple[SigningKey | None, int, str]],
    removed: set[int],
    seed: int,
) -> None:
    """Each holder gets the records by another road and in another order, signs some itself and knows other keys."""
    folder = tmp_path_factory.mktemp("holders")
    rng = random.Random(seed)
    with opened(folder / "maker.lace") as maker:
        made = [
            maker.put(b"%d" % number, group="u", app="ding", name=name, tai=dated(days), sign=writer)
            for number, (writer, days, name) in enumerate(versions)
        ]
        gone = [made[number] for number in removed if number < len(made)]
        stored = {record: maker.store.get(record) for record in made}
        maker.export(folder / "all.bundle")
        memory, durable, imported, exchanged = (
            opened(),
            opened(folder / "durable.lace"),
            opened(folder / "imported.lace"),
            opened(folder / "exchanged.lace"),
        )
        for lace in (memory, durable):
            order = rng.sample(made, len(made))
            for record in order:
                lace.put_stored(stored[record])
                if rng.random() < 0.3:  # it goes and comes again: another place in the order of arrival
                    lace.delete(record)
                    lace.put_stored(stored[record])
        imported.import_(folder / "all.bundle")
        for key in rng.sample(WRITERS[1:], 2):
            assert key is not None
            imported.know_key(key.verifier)
        interlace(exchanged, maker, expose="all")
        for record in made:  # an exchange takes nothing that is dated beyond the horizon
            exchanged.put_stored(stored[record])
        holders = [Holder(lace, folder) for lace in (maker, memory, durable, imported, exchanged)]
        for holder in holders:
            if gone:
                holder.lace.delete(*gone)
        expected, *others = [holder.answers() for holder in holders]
        assert all(answer == expected for answer in others)
        assert expected == _naive_answers(maker, [entry for entry in made if entry not in gone])
        for holder in holders[1:]:
            holder.lace.close()


def _naive_answers(maker: api.Lace, records: Sequence[str]) -> object:
    """The same by the definition alone: the newest within a day of now, ties by hash, one version for each writer."""
    known = {}
    for record in records:
        parts = maker.record(record).parts
        known[record] = (parts.name, (parts.signed_by or None, parts.tai, record))
    read, shown = {}, {}
    for name in "xy":
        versions = sorted(((v[1], v[2], v[0]) for n, v in known.values() if n == name), reverse=True)
        within = [one for one in versions if one[0] <= dated(HORIZON_S / 86_400)]
        newest: dict[str | None, tuple[str | None, str, str]] = {}
        for tai, record, signer in within:
            newest.setdefault(signer, (signer, tai, record))
        ahead = [(signer, tai, record) for tai, record, signer in versions if (tai, record, signer) not in within]
        if not newest:
            read[name] = (b"nothing", "", [], [])
            continue
        tip, *concurrent = newest.values()
        read[name] = (maker.get(tip[2]), tip[2], concurrent, ahead)
        shown[tip[2]] = concurrent
    ordered = sorted(known, key=lambda record: (known[record][0], known[record][1][1], record))
    rows = [(record, known[record][0], record in shown, shown.get(record, [])) for record in ordered]
    return rows, [(record, shown[record]) for record in ordered if record in shown], read


@given(VERSIONS, st.randoms(use_true_random=False), st.sampled_from([None, 0, HORIZON_S]))
def test_a_tip_is_a_function_of_the_set_of_versions(
    versions: list[tuple[SigningKey | None, int, str]], rng: random.Random, horizon_s: int | None
) -> None:
    policy = TipPolicy.at(NOW, horizon_s)
    entries = [
        Entry("u", "a", "n", dated(days), f"P.{number}", number, key and key.verifier, 0)  # type: ignore[arg-type]
        for number, (key, days, _) in enumerate(versions)
    ]
    shuffled = rng.sample(entries, len(entries))
    tip = choose_tip(newest_first(shuffled), policy)
    assert tip == choose_tip(newest_first(entries), policy)
    by_writer = newest_by_writer(standing(newest_first(entries), policy))
    assert newest_by_writer(standing(newest_first(shuffled), policy)) == by_writer
    assert by_writer[:1] == ([] if tip is None else [tip])
    assert tip is None or policy.admits(tip)


def test_a_horizon_beyond_the_end_of_time_is_the_end_of_time() -> None:
    assert TipPolicy.at(NOW, 10**12).until == "9999999999:999999999"


# --- as people use it


def test_members_who_put_one_name_read_the_same_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    run = CliRunner().invoke
    files = [str(tmp_path / name) for name in ("a.lace", "b.lace", "c.lace")]
    for who in ("ann", "bob"):
        assert run(app, ["key", "new", who]).exit_code == 0
    for file in files:
        assert run(app, ["init", file]).exit_code == 0
    common = ["-g", "club", "-a", "notes", "-n", "meet", "-"]
    for file, who, tai, said in (
        (files[0], "ann", "1700000000:000000000", "meet at 9"),
        (files[1], "bob", "1700000001:000000000", "meet at 10"),
    ):
        assert run(app, ["put", file, "--sign", who, "--tai", tai, *common], input=said).exit_code == 0
    for first, second in ((0, 1), (1, 2), (2, 0)):
        done = run(app, ["interlace", files[first], files[second], "--expose", "all"])
        assert done.exit_code == 0, done.output
    answers = []
    for file in files:
        got = run(app, ["get", file, "//club//notes//meet"])
        assert got.stdout == "meet at 10"
        assert "note: 2 writers have written here; this is the newest version, by bob (2023-11-14 22:12:" in got.stderr
        assert "; also by ann (2023-11-14 22:12:" in got.stderr
        listed = [json.loads(line) for line in run(app, ["ls", file, "--json"]).stdout.splitlines()]
        assert [(row["is_tip"], len(row["concurrent"])) for row in listed] == [(False, 0), (True, 1)]
        assert [one["tai"] for one in listed[1]["concurrent"]] == ["1700000000:000000000"]
        for more in ([], ["--tips"]):
            shown = run(app, ["ls", file, *more]).stdout
            assert "also written by" in shown
            assert "ann (2023-11-14 22:12:" in shown
        answers.append((listed, run(app, ["ls", file, "--tips"]).stdout, _inspected(Path(file))))
    assert answers[0] == answers[1] == answers[2]


def _inspected(path: Path) -> object:
    """What the inspector says of the name and its tip, apart from where the lace is and in which order records came."""
    inspected = open_all([path])
    with inspecting(inspected) as inspector:
        visitor = Visitor.admitted(inspector)
        base = f"/lace/{path.stem}"
        names = visitor.page(f"{base}?group=club&app=notes")["names"]
        record = visitor.page(f"{base}/record/{names[0]['tip']['hash']}")
    inspected.close()
    return names, [record[key] for key in ("is_tip", "tip", "concurrent", "versions", "content_text")]


def test_known_keys_are_a_hint_and_can_be_told_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    path = tmp_path / "x.lace"
    with api.open(path, create=True) as lace:
        lace.put(b"mine", sign=MINE, tai="1700000000:000000000", **PLACE)
        put(lace, b"theirs", days=-9_999, sign=OTHER)
    first = CliRunner().invoke(app, ["get", str(path), HERE])
    assert first.stdout == "mine"
    assert first.stderr.count("a key that this lace does not know") == 1
    known = CliRunner().invoke(app, ["key", "know", str(path)])
    assert known.stdout.split() == [MINE.verifier]
    CliRunner().invoke(app, ["key", "know", str(path), OTHER.verifier])
    second = CliRunner().invoke(app, ["get", str(path), HERE])
    assert second.stdout == "mine"
    assert "does not know" not in second.stderr
    assert "2 writers have written here" in second.stderr
