"""081: what a retraction withdraws, in every reader of tips, and as people use it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import lace as api
from lace.cli.app import app
from lace.errors import InvalidInput
from lace.notation.tai import TAI
from lace.policy.select import select_word
from lace.porcelain.exchange import interlace
from lace.records.keys import SigningKey
from lace.records.tip import TipPolicy, VersionState, judged, newest_first
from tries import tries

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "retraction.json").read_text(encoding="utf-8"))
ANN, BOB = (SigningKey(bytes(31) + bytes([number])) for number in (5, 7))
MEET = {"group": "club", "app": "notes", "name": "meet"}
HERE = "//club//notes//meet"


class SetClock:
    """A clock that stands until somebody sets it."""

    def __init__(self, text: str) -> None:
        self.now = TAI(text)

    def tai(self) -> TAI:
        self.now = self.now.plus_ns(1)
        return self.now

    def monotonic_ns(self) -> int:
        return 0


def opened(path: Path | str = ":memory:") -> api.Lace:
    return api.open(path, create=path != ":memory:", clock=SetClock("1700000050:000000000"))


# --- the vectors


def of_world(name: str) -> tuple[dict[str, dict[str, Any]], str | None]:
    world = dict(VECTORS["worlds"][name])
    tip = world.pop("tip")
    return world, tip


@pytest.mark.clause("081-FORM-01")
@pytest.mark.clause("081-FORM-02")
@pytest.mark.clause("081-FORM-03")
@pytest.mark.clause("081-FORM-04")
@pytest.mark.clause("081-MEAN-01")
@pytest.mark.clause("081-MEAN-02")
@pytest.mark.clause("081-MEAN-03")
@pytest.mark.clause("081-MEAN-04")
@pytest.mark.clause("081-MEAN-05")
@pytest.mark.clause("081-UNDO-01")
@pytest.mark.clause("081-UNDO-02")
@pytest.mark.parametrize("is_durable", [False, True])
@pytest.mark.parametrize("name", VECTORS["worlds"])
def test_the_vectors(tmp_path: Path, name: str, is_durable: bool) -> None:
    world, tip = of_world(name)
    labels = {one["hash"]: label for label, one in world.items()}
    rng = random.Random(name)
    horizon_s = (TAI(VECTORS["until"]).to_ns() - TAI("1700000050:000000000").to_ns()) // 10**9
    path = tmp_path / "a.lace" if is_durable else ":memory:"
    with api.open(path, create=is_durable, clock=SetClock("1700000050:000000000"), horizon_s=horizon_s) as lace:
        for one in rng.sample(list(world.values()), len(world)):
            lace.put_stored(one["stored"].encode())
        for _ in range(2):
            found = {
                labels[one.version.hash]: (one.state, one.by and labels[one.by.hash]) for one in lace.history(HERE)
            }
            assert found == {label: (one["state"], one["by"]) for label, one in world.items()}
            rows = {labels[row.hash]: row for row in lace.list(withdrawn=True)}
            assert {label: row.state for label, row in rows.items()} == {k: one["state"] for k, one in world.items()}
            assert [row.hash for row in lace.list(tips=True)] == ([tip] if tip else [])
            shown = {labels[row.hash] for row in lace.list()}
            assert shown == {label for label, one in world.items() if one["state"] in ("stands", "ahead")}
            if tip:
                assert lace.resolve(HERE) == lace.tip(HERE).entry.hash == tip
            else:
                with pytest.raises(api.NotFound, match=r"was withdrawn by|there is no record"):
                    lace.get(HERE)
            gone = next(iter(world.values()))  # a deleted version, stored again, changes nothing
            lace.delete(gone["hash"])
            lace.put_stored(gone["stored"].encode())
        if is_durable:
            assert list(lace.verify()) == []
    if is_durable:
        api.compact(tmp_path / "a.lace")
        with api.open(tmp_path / "a.lace", clock=SetClock("1700000050:000000000"), horizon_s=horizon_s) as again:
            assert [row.hash for row in again.list(tips=True)] == ([tip] if tip else [])


# --- random versions against the definition

STEP = st.tuples(
    st.sampled_from(["put", "put", "all", "one", "two"]), st.integers(0, 6), st.integers(0, 9), st.integers(0, 9)
)


@tries(60)
@given(steps=st.lists(STEP, max_size=12), seed=st.integers(0, 999))
@pytest.mark.clause("081-MEAN-05")
def test_what_stands_is_what_the_definition_says(steps: list[tuple[str, int, int, int]], seed: int) -> None:
    """The clauses as sets, without a pass: a retraction counts iff no newer one that counts withdraws it."""
    with opened() as lace:
        made: list[str] = []
        for kind, second, first, second_choice in steps:
            headers: list[tuple[str, str]] = []
            if kind == "all":
                headers = [("Retract", "all")]
            elif kind in ("one", "two") and made:
                chosen = [made[at % len(made)] for at in (first, second_choice)][: 1 if kind == "one" else 2]
                headers = [("Retract+Link", f"version {record}") for record in chosen]
            content = b"" if headers else b"%d" % len(made)
            made.append(lace.put(content, tai=f"170000000{second}:000000000", headers=headers, **MEET))
        entries = list(lace.store.entries())
        order = {entry.hash: (entry.tai, entry.hash) for entry in entries}

        def withdraws(by: Any, entry: Any) -> bool:
            named = "all" in by.withdraws or entry.hash in by.withdraws
            return named and order[by.hash] > order[entry.hash] and counts(by)

        def counts(entry: Any) -> bool:
            return not any(withdraws(by, entry) for by in entries if order[by.hash] > order[entry.hash])

        expected = {entry.hash for entry in entries if not entry.withdraws and counts(entry)}
        shuffled = random.Random(seed).sample(entries, len(entries))
        found = {
            one.version.hash for one in judged(newest_first(shuffled), TipPolicy()) if one.state is VersionState.STANDS
        }
        assert found == expected
        tip = max(expected, key=lambda record: order[record], default=None)
        assert [row.hash for row in lace.list(tips=True)] == ([tip] if tip else [])


# --- the verbs


def test_a_coordinate_is_withdrawn_and_comes_back(tmp_path: Path) -> None:
    with opened(tmp_path / "a.lace") as lace:
        first = lace.put(b"at 9", sign=ANN, **MEET)
        second = lace.put(b"at 10", sign=BOB, **MEET)
        (gone,) = lace.retract(HERE, sign=BOB)
        with pytest.raises(api.NotFound, match=rf"was withdrawn by {BOB.verifier}"):
            lace.get(HERE)
        withdrawn = lace.withdrawal(HERE)
        assert withdrawn is not None
        assert (withdrawn.hash, withdrawn.signer) == (gone, BOB.verifier)
        assert list(lace.list()) == []
        with pytest.raises(api.NotFound, match="was withdrawn"):
            lace.retract(HERE)
        assert lace.get(first) == b"at 9"
        lace.undo(HERE)
        assert lace.get(HERE) == b"at 10"
        with pytest.raises(api.NotFound, match="nothing is withdrawn"):  # taking back is not itself taken back
            lace.undo("//club//notes//other")
        lace.retract(second)
        assert lace.get(HERE) == b"at 9"
        assert [notice[:8] for notice in lace.tip(HERE).notices()] == ["versions"]
        with pytest.raises(InvalidInput, match="withdrawn already"):
            lace.retract(second)
        lace.put(b"at 11", **MEET)
        assert lace.get(HERE) == b"at 11"
        with pytest.raises(InvalidInput, match="withdraws nothing"):
            lace.undo(first)


def test_versions_of_one_coordinate_are_withdrawn_by_one_record(tmp_path: Path) -> None:
    with opened(tmp_path / "a.lace") as lace:
        records = [lace.put(b"%d" % number, **MEET) for number in range(3)]
        other = lace.put(b"other", group="club", app="notes", name="other")
        assert len(lace.retract(records[0], records[2], other)) == 2
        assert lace.get(HERE) == b"1"
        with pytest.raises(api.NotFound):
            lace.get("//club//notes//other")
        with pytest.raises(api.NotFound):  # all or none
            lace.retract(records[1], "//club//notes//missing")
        assert lace.get(HERE) == b"1"


def test_a_retraction_is_later_than_what_it_withdraws_even_if_that_is_dated_ahead() -> None:
    with opened() as lace:
        lace.put(b"in an hour", tai="1700003650:000000000", **MEET)
        lace.retract(HERE)
        with pytest.raises(api.NotFound, match="was withdrawn"):
            lace.get(HERE)
        lace.undo(HERE)
        assert lace.get(HERE) == b"in an hour"


@pytest.mark.clause("081-READ-01")
def test_a_selector_finds_a_withdrawn_version_only_by_its_instant() -> None:
    with opened() as lace:
        old = lace.put(b"old", sign=ANN, tai="1700000001:000000000", **MEET)
        lace.put(b"new", sign=ANN, tai="1700000002:000000000", **MEET)
        lace.retract(HERE, sign=BOB)
        for selector in ("", "/|/seal", f"/|/seal/{ANN.verifier}"):
            with pytest.raises(api.NotFound):
                lace.get(HERE + selector)
            assert list(lace.list(HERE + selector, tips=True)) == []
        named = f"{HERE}/|/seal/{ANN.verifier}/1700000001:000000000"
        assert lace.get(named) == lace.get(old) == b"old"
        assert [row.hash for row in lace.list(named, tips=True)] == [old]


@pytest.mark.clause("081-WIRE-01")
def test_it_travels_as_what_it_withdraws_did(tmp_path: Path) -> None:
    with opened(tmp_path / "a.lace") as ours, opened(tmp_path / "b.lace") as theirs:
        ours.put(b"at 9", **MEET)
        ours.put(b"kept to ourselves", group="club", app="diary", name="meet")
        select = select_word("//club//notes")
        interlace(ours, theirs, select=select, expose="all")
        assert theirs.get(HERE) == b"at 9"
        ours.retract(HERE, "//club//diary//meet")
        interlace(ours, theirs, select=select, expose="all")
        with pytest.raises(api.NotFound, match="was withdrawn"):
            theirs.get(HERE)
        assert {row["App"] for row in theirs.list(withdrawn=True)} == {"notes"}
        theirs.undo(HERE)
        interlace(ours, theirs, select=select, expose="all")
        assert ours.get(HERE) == theirs.get(HERE) == b"at 9"


def test_folders_do_not_write_what_is_withdrawn(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with opened(tmp_path / "a.lace") as lace:
        lace.put(b"1", group="club", app="notes", name="a")
        second = lace.put(b"2", group="club", app="notes", name="a")
        lace.put(b"x", group="club", app="notes", name="b")
        lace.retract(second, "//club//notes//b")
        list(lace.checkout(folder, "//club//notes"))
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"a": b"1"}


def test_long_histories_are_toldlike_short_ones(tmp_path: Path) -> None:
    with opened(tmp_path / "a.lace") as lace:
        with lace.batch() as batch:
            records = [batch.put(b"%d" % n, tai=f"16{n:08d}:000000000", **MEET) for n in range(1_100)]
        lace.retract(*records[600:])
        assert lace.get(HERE) == b"599"
        assert len(list(lace.list(HERE))) == 600
        (row,) = lace.list(HERE, tips=True)
        assert row.hash == records[599]
        lace.retract(HERE)
        assert list(lace.list(HERE)) == []
        assert len(list(lace.list(HERE, withdrawn=True))) == 1_102


# --- the command


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return lambda *words, **more: CliRunner().invoke(app, list(words), **more)


def test_people_withdraw_and_take_back(run: Any) -> None:
    run("key", "new", "ann")
    run("init", "a.lace")
    assert run("put", "a.lace", "-g", "club", "-a", "notes", "-n", "meet", "-", input="at 9").exit_code == 0
    done = run("retract", "a.lace", HERE, "--sign", "ann", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["coordinate"] == HERE
    missing = run("get", "a.lace", HERE)
    assert missing.exit_code == 1
    assert "was withdrawn by V." in missing.stderr
    assert "lace undo" in missing.stderr
    listed = run("ls", "a.lace")
    assert "meet" not in listed.stdout
    assert "lace ls --all" in listed.stderr
    everything = run("ls", "a.lace", "--all")
    assert "withdrawn by ann" in everything.stdout
    assert "withdraws other versions" in everything.stdout
    states = [json.loads(line)["state"] for line in run("ls", "a.lace", "--all", "--json").stdout.splitlines()]
    assert states == ["withdrawn", "retracts"]
    assert run("undo", "a.lace", HERE).exit_code == 0
    assert run("get", "a.lace", HERE).stdout == "at 9"
    assert run("retract", "a.lace", "//club//notes//none").exit_code == 1
