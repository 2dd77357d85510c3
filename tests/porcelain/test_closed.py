"""After `close` every public verb raises a LaceError that says so, over a file and in memory, never SQLite's own."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lace
from lace.notation.identifiers import RecordHash
from lace.porcelain.lace import Lace
from lace.records.model import Blob, Plex

RULES = "Out(P) :- Have(P)."
PLACE = {"group": "u", "app": "ding", "name": "n"}
RECORD = RecordHash("B.0BxnPOsBgaK3eaf~Zq63YrEAZrnfeQuZuqsuzDQYZtW.H3")
KEY = lace.generate_key()

# Every public name of `Lace`, and how it is used.
VERBS: dict[str, Callable[[Lace, Path], object]] = {
    "batch": lambda one, _: one.batch().__enter__().flush(),
    "changes": lambda one, _: list(one.changes("0/0", wait_s=0)),
    "content": lambda one, _: list(one.content("//u//ding//n")),
    "content_length": lambda one, _: one.content_length("//u//ding//n"),
    "cursor": lambda one, _: one.cursor(),
    "delete": lambda one, _: one.delete(RECORD),
    "checkout": lambda one, folder: list(one.checkout(folder / "out")),
    "explain": lambda one, _: one.explain(RULES, "Out(P)"),
    "export": lambda one, folder: one.export(folder / "out.bundle"),
    "facts": lambda one, _: list(one.facts()),
    "get": lambda one, _: one.get("//u//ding//n"),
    "import_": lambda one, folder: one.import_(folder / "in.bundle"),
    "incomplete": lambda one, _: list(one.incomplete()),
    "know_key": lambda one, _: one.know_key(KEY.verifier),
    "known_keys": lambda one, _: one.known_keys(),
    "lacking": lambda one, _: one.lacking("//u//ding//n"),
    "list": lambda one, _: list(one.list()),
    "list_blobs": lambda one, _: list(one.list_blobs()),
    "load": lambda one, _: one.load(RECORD),
    "put": lambda one, _: one.put(b"x", **PLACE),
    "put_record": lambda one, _: one.put_record(Blob(b"x")),
    "put_stored": lambda one, folder: one.put_stored((folder / "in.bundle").read_bytes()),
    "put_tree": lambda one, folder: list(one.put_tree(folder, group="u", app="ding")),
    "query": lambda one, _: one.query(RULES),
    "record": lambda one, _: one.record("//u//ding//n"),
    "forget": lambda one, _: one.forget("//u//ding//n"),
    "forgotten": lambda one, _: one.forgotten(),
    "take_again": lambda one, _: one.take_again(RECORD),
    "at": lambda one, _: one.at("2020-01-01").list(),
    "revert": lambda one, _: one.revert("//u//ding//n", "2020-01-01"),
    "put_plex": lambda one, _: one.put_plex(Plex(**PLACE, tai=lace.TAI("1700000000:000000000"))),
    "retract": lambda one, _: one.retract("//u//ding//n"),
    "undo": lambda one, _: one.undo("//u//ding//n"),
    "history": lambda one, _: list(one.history("//u//ding//n")),
    "withdrawal": lambda one, _: one.withdrawal("//u//ding//n"),
    "resolve": lambda one, _: one.resolve("//u//ding//n"),
    "stat": lambda one, _: one.stat(),
    "store": lambda one, _: one.store,
    "stored": lambda one, _: one.stored("//u//ding//n"),
    "tip": lambda one, _: one.tip("//u//ding//n"),
    "policy": lambda one, _: one.policy(),
    "tip_policy": lambda one, _: one.tip_policy() and one.tip("//u//ding//n"),
    "unlinked_blobs": lambda one, _: one.unlinked_blobs(),
    "verify": lambda one, _: list(one.verify()),
}


async def _node(one: Lace) -> None:
    async with lace.Node(one):
        pass


def _served(one: Lace, folder: Path) -> None:
    with lace.serve(one, f"unix:{folder}/s.sock"):
        pass


# Every public function that takes a lace.
FUNCTIONS: dict[str, Callable[[Lace, Path], object]] = {
    "Node": lambda one, _: asyncio.run(_node(one)),
    "connect": lambda one, folder: lace.connect(one, f"unix:{folder}/nobody.sock"),
    "exchange": lambda one, _: lace.exchange(one, one),
    "explain": lambda one, _: lace.explain(one, RULES, "Out(P)"),
    "fetch": lambda one, _: lace.fetch(one, one, "//u//"),
    "follow": lambda one, _: lace.follow(one, one),
    "follow_rules": lambda one, _: lace.follow_rules(RULES, one),
    "preview": lambda one, folder: lace.preview(one, f"unix:{folder}/nobody.sock"),
    "publish": lambda one, _: lace.publish(one, one, [RECORD]),
    "query": lambda one, _: lace.query(one, RULES),
    "serve": _served,
    "status": lambda one, _: lace.status(one),
    "view": lambda one, _: lace.view(one, lace.generate_key().verifier),
    "why": lambda one, _: lace.why(one, RECORD),
}


@pytest.fixture(params=["file", "memory"])
def closed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lace]:
    path = ":memory:" if request.param == "memory" else tmp_path / "x.lace"
    with lace.open(path, create=True) as opened:
        opened.put(b"x", **PLACE)
        opened.export(tmp_path / "in.bundle")
    yield opened
    opened.close()  # a second time does nothing


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_of_a_closed_lace_says_that_it_is_closed(closed: Lace, name: str, tmp_path: Path) -> None:
    with pytest.raises(lace.StoreError, match="this lace is closed"):
        VERBS[name](closed, tmp_path)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_over_a_closed_lace_says_that_it_is_closed(closed: Lace, name: str, tmp_path: Path) -> None:
    with pytest.raises(lace.StoreError, match="this lace is closed"):
        FUNCTIONS[name](closed, tmp_path)


def test_the_tables_name_everything_that_is_public() -> None:
    public = {name for name, _ in inspect.getmembers(Lace) if not name.startswith("_")}
    assert public - {"clock", "close", "verifier_of"} == VERBS.keys()
    takers = set()
    for name in lace.__all__:
        found = getattr(lace, name)
        if inspect.isfunction(found) or name == "Node":
            given = inspect.signature(found).parameters.values()
            if any(
                "Lace" in str(one.annotation)
                or "HasStore" in str(one.annotation)
                or "HasRecordStore" in str(one.annotation)
                or one.annotation == "Asked"
                for one in given
            ):
                takers.add(name)
    assert takers == FUNCTIONS.keys()


def test_what_was_begun_before_a_lace_closed_says_so_too(tmp_path: Path) -> None:
    with lace.open(tmp_path / "x.lace", create=True) as opened:
        opened.put(b"x", **PLACE)
        waiting = opened.batch().__enter__()
        waiting.put(b"y", **PLACE)
        rows, answer, view = opened.list(), opened.query(RULES), lace.follow_rules(RULES, opened)
        changes, content = opened.changes("0/0", wait_s=0), opened.facts()
    for later in (waiting.flush, lambda: next(rows), view.apply, lambda: list(changes), lambda: next(content)):
        with pytest.raises(lace.StoreError, match="closed"):
            later()
    assert len(answer) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_is_told_to_open_its_own_and_the_parent_goes_on(tmp_path: Path) -> None:
    program = (
        "import os, lace\n"
        "with lace.open('x.lace', create=True) as notes:\n"
        "    notes.put(b'x', group='u', app='a', name='n')\n"
        "    if os.fork() == 0:\n"
        "        try:\n"
        "            notes.get('//u//a//n')\n"
        "        except lace.StoreError as error:\n"
        "            print(error, flush=True)\n"
        "        with lace.open('x.lace') as own:\n"
        "            own.put(b'y', group='u', app='a', name='m')\n"
        "        os._exit(0)\n"
        "    assert os.wait()[1] == 0\n"
        "    print(notes.get('//u//a//m'))\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    lines = done.stdout.splitlines()
    assert "opened before this process was forked; open it again" in lines[0], done.stderr
    assert lines[1] == "b'y'"
