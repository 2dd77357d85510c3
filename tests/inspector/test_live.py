"""A running node, captured streams and archives, as the inspector shows them."""

from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from inspector.live import Place, make_archive, meeting_place, run
from inspector.visiting import Visitor
from lace.inspector.inspected import open_all
from lace.inspector.node import ask_node
from lace.inspector.serving import inspecting
from lace.interlace.vocabulary import Block
from lace.runtime.trace.telling import FACTS, KINDS


@pytest.fixture(scope="module")
def meeting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with meeting_place(tmp_path_factory.mktemp("m")) as place:
        yield place


@pytest.mark.long
def test_a_node_tells_what_moved_on_a_link(meeting: Place) -> None:
    inspected = open_all([], node=f"unix:{meeting.watch}")
    with inspecting(inspected) as running:
        visitor = Visitor.admitted(running)
        deadline = time.monotonic() + 30
        while (link := visitor.page("/node")["links"][0])["open"]:
            assert time.monotonic() < deadline
        assert (link["sent"], link["received"], link["rejected"]) == (13, 0, {})
        assert link["plan"].startswith("E.")
        assert link["bytes_out"] > link["bytes_in"] > 0
        one = visitor.page("/node?link=1")["link"]
        assert [item["kind"] for item in one["items"]].count("preface") == 2
        assert sum(item["kind"] == "record" for item in one["items"]) == 13
        assert "Opens the stream" in visitor.get("/node?link=1").text
        assert visitor.get("/node?link=99").status == 200
        assert "There is no such link".lower() in visitor.get("/node?link=99").text.lower()


def test_the_watch_socket_is_its_owners_alone_and_survives_nonsense(meeting: Place) -> None:
    assert stat.S_IMODE(os.stat(meeting.watch).st_mode) == 0o600
    for question in (b"\n", b"x" * 10_000 + b"\n", b"link 99999999999999999999\n", b"\xff\xfe\n", b""):
        with socket.socket(socket.AF_UNIX) as near:
            near.settimeout(10)
            near.connect(str(meeting.watch))
            try:
                near.sendall(question)
                near.shutdown(socket.SHUT_WR)
                near.recv(1 << 16)
            except OSError:
                pass  # the node hung up on it
    assert "links" in ask_node(f"unix:{meeting.watch}", "links")


def test_a_node_that_is_gone_is_said_to_be_gone(tmp_path: Path) -> None:
    inspected = open_all([], node=f"unix:{tmp_path / 'nobody'}")
    with inspecting(inspected) as running:
        visitor = Visitor.admitted(running)
        assert "no node answers there" in visitor.get("/node").text
        assert visitor.get("/node").status == 200


def test_a_capture_is_told_item_by_item_and_explained(meeting: Place) -> None:
    inspected = open_all([meeting.capture])
    with inspecting(inspected) as running:
        visitor = Visitor.admitted(running)
        items = visitor.page("/capture/talk")["items"]
        assert all(item["explained"] for item in items)
        assert {item["text"] for item in items if item["kind"] == "record"} >= set(meeting.world.records.values())
        assert visitor.page("/capture/talk?start=2")["items"] == items[2:]
        assert visitor.get("/capture/nothing").status == 404


def test_a_broken_capture_is_shown_as_far_as_it_goes(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text('{"ns": 1, "way": "in", "data": "bm9uc2Vuc2UK"}\n')
    (tmp_path / "worse").write_text('{"ns": 1}\n')
    inspected = open_all([tmp_path / "bad", tmp_path / "worse"])
    with inspecting(inspected) as running:
        visitor = Visitor.admitted(running)
        assert [item["kind"] for item in visitor.page("/capture/bad")["items"]] == ["fault"]
        assert visitor.page("/capture/worse")["error"]


def test_every_word_of_the_wire_is_explained() -> None:
    spoken = {predicate.name for block in Block for predicate in block.value}
    assert spoken == set(FACTS)
    assert set(KINDS) == {"preface", "resource", "record", "end", "close", "fault"}


def test_an_archive_shows_its_report_and_its_tables(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    make_archive(tmp_path / "archive")
    inspected = open_all([tmp_path / "archive"])
    with inspecting(inspected) as running:
        visitor = Visitor.admitted(running)
        page = visitor.page("/archive/archive")
        assert page["tables"][0]["rows"] == 260
        seen: list[str] = []
        path: str | None = "/archive/archive?table=records"
        while path:
            part = visitor.page(path)
            seen += [row["hash"] for row in part["rows"]]
            path = part["next"]
        assert len(seen) == len(set(seen)) == 260
        text = visitor.get("/archive/archive?table=records").text
        assert "<b>1" not in text
        assert "&lt;b&gt;1-0" in text
        assert visitor.get("/archive/archive?table=../../etc").status == 200


def test_an_archive_with_a_log_shows_what_is_live(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    from lace.spark.archive.filesystem import open_files
    from lace.spark.archive.log import Log
    from lace.spark.archive.versions import Commit, DataFile, State

    root = tmp_path / "kept"
    root.mkdir()
    log, state = Log(open_files(str(root))), State()
    for number in range(20):  # past a stretch of commits
        name = f"data/records-{number}.parquet"
        (root / "data").mkdir(exist_ok=True)
        parquet.write_table(arrow.table({"hash": [f"r{number}"]}), root / name)
        file = DataFile(table="records", path=name, rows=1, bytes=(root / name).stat().st_size)
        dropped = (f"data/records-{number - 1}.parquet",) if number % 3 == 1 else ()
        said = {"time": "2026-11-16T12:00:00+00:00", "operation": "add", "counts": {"records": 1}}
        change = Commit(version=0, added=(file,), dropped=dropped, **said)
        state = log.commit(state, change)
    inspected = open_all([root])
    with inspecting(inspected) as running:
        visitor = Visitor.admitted(running)
        page = visitor.page("/archive/kept")
        assert page["tables"] == [
            {"name": "records", "files": len(state.files), "rows": state.rows("records"),
             "bytes": sum(file.bytes for file in state.files)}
        ]  # fmt: skip
        assert page["commits"][0]["version"] == 20
        rows = visitor.page("/archive/kept?table=records")["rows"]
        assert {row["hash"] for row in rows} == {
            f"r{number}" for number in range(20) if number % 3 != 0 or number == 19
        }
        for path in (root / "log").rglob("*.*"):  # and where the commits of the beginning are gone
            os.utime(path, (1_000_000_000 + (path.stem == "00000020") * 10**6,) * 2)
        assert log.forget(18, 3600) == 16
        assert {row["hash"] for row in visitor.page("/archive/kept?table=records")["rows"]} == {
            row["hash"] for row in rows
        }
        (root / "log" / "00000020.json").write_text("nonsense")
        assert visitor.get("/archive/kept").status == 500
        assert "not a commit" in visitor.get("/archive/kept").text


@pytest.mark.long
def test_what_cannot_be_shown_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("hello")
    for name in ("folder", "text", "missing"):
        done = run("inspect", str(tmp_path / name), "--no-open")
        assert done.returncode != 0
        assert name in done.stderr
    assert run("inspect").returncode == 2
