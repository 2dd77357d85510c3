"""What may be changed from a page, and that nothing may be without `--write`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lace
from inspector.visiting import Visitor, World, make_world
from lace.inspector.inspected import open_all
from lace.inspector.serving import inspecting
from lace.records.keys import SigningSecret
from lace.runtime.identity.keyring import KeyRing


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Visitor, World]]:
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    KeyRing.of_user().add("me", SigningSecret.generate())
    world = make_world(tmp_path / "mine.lace")
    inspected = open_all([world.path], write=True)
    with inspecting(inspected) as running:
        yield Visitor.admitted(running), world
    inspected.close()


FORM = {"group": "u", "app": "notes", "name": "new", "content": "one\r\ntwo\r\n", "key": ""}


def test_a_form_puts_a_record_and_leads_to_it(writer: tuple[Visitor, World]) -> None:
    visitor, _ = writer
    answer = visitor.post("/lace/mine/put", FORM | {"key": "me"})
    assert answer.status == 303
    record = visitor.page(answer.headers["location"])
    assert (record["name"], record["content_text"], record["type"]) == ("new", "one\ntwo\n", "S")


def test_a_form_removes_a_record_after_asking(writer: tuple[Visitor, World]) -> None:
    visitor, world = writer
    record = world.records["bytes"]
    assert "Remove this record?" in visitor.get(f"/lace/mine/delete?record={record}").text
    assert visitor.post("/lace/mine/delete", {"record": record, "sure": "yes"}).status == 200
    assert visitor.get(f"/lace/mine/record/{record}").status == 200
    assert visitor.post("/lace/mine/delete", {"record": record, "sure": record}).status == 303
    assert visitor.get(f"/lace/mine/record/{record}").status == 404


def test_an_address_alone_changes_nothing(writer: tuple[Visitor, World]) -> None:
    visitor, world = writer
    record = world.records["bytes"]
    for path in ("/lace/mine/put?group=u&app=a&name=b&content=c&sent=1&(posted)=1",
                 f"/lace/mine/delete?record={record}&sure={record}&(posted)=1&%28posted%29=1"):  # fmt: skip
        assert visitor.get(path).status == 200
    assert visitor.page("/lace/mine")["records"] == 13


def test_a_bad_form_says_what_is_wrong_and_keeps_what_was_typed(writer: tuple[Visitor, World]) -> None:
    visitor, _ = writer
    for wrong in ({"name": "a//b"}, {"group": ""}, {"key": "nobody"}):
        answer = visitor.post("/lace/mine/put", FORM | wrong)
        assert answer.status == 400
        assert "two" in answer.text
    assert visitor.page("/lace/mine")["records"] == 13


def test_without_write_there_is_no_way_to_change_anything(visitor: Visitor, world: World) -> None:
    record = world.records["first"]
    for path, form in (("/put", FORM), ("/delete", {"record": record, "sure": record})):
        assert visitor.post(f"/lace/notes{path}", form).status == 404
        assert visitor.get(f"/lace/notes{path}").status == 404
    assert "Remove" not in visitor.get(f"/lace/notes/record/{record}").text
    with lace.open(world.path, read_only=True) as opened:
        assert opened.stat().records == 13
