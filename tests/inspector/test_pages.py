"""The pages over plain HTTP: what they show, as HTML and as JSON, for good and for hostile records."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

import lace
from inspector.visiting import HOSTILE_NAME, HOSTILE_TEXT, Visitor, World, make_world
from lace.inspector.html import tag, visible
from lace.inspector.inspected import InspectorLimits, open_all
from lace.inspector.serving import inspecting
from lace.inspector.widgets import prose
from lace.notation.tai import TAI


def test_every_page_is_json_too(visitor: Visitor, world: World) -> None:
    record = world.records["third"]
    for path in ("/lace/notes", "/lace/notes/browse", "/lace/notes?group=u", "/lace/notes?group=u&app=notes",
                 "/lace/notes/recent",
                 "/lace/notes/find?q=entry",
                 f"/lace/notes/record/{record}", "/lace/notes/rules",
                 f"/lace/notes/compare?older={world.records['first']}&newer={record}"):  # fmt: skip
        answer = visitor.get(path)
        assert answer.status == 200, path
        assert answer.text.startswith("<!doctype html>")
        assert isinstance(visitor.page(path), dict), path


def test_a_lace_that_was_compacted_meanwhile_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "n.lace"
    with lace.open(path, create=True) as notes:
        record = notes.put(b"kept", group="u", app="notes", name="one")
    inspected = open_all([path])
    try:
        with inspecting(inspected) as inspector:
            visitor = Visitor.admitted(inspector)
            places = ("/lace/n", f"/lace/n/record/{record}", f"/lace/n/content/{record}", "/lace/n/rules")
            for place in places:
                lace.compact(path)
                assert visitor.get(place).status == 200, place
    finally:
        inspected.close()


def test_spaces_are_counted_and_lead_to_names(visitor: Visitor) -> None:
    page = visitor.page("/lace/notes")
    found = {(space["group"], space["app"]): space["records"] for space in page["spaces"]}
    assert found == {("field", "sensors/roof"): 1, ("u", "log"): 5, ("u", "notes"): 4, ("u", "photos"): 3}
    below = visitor.page("/lace/notes?group=u&app=log")
    assert [(row["name"], row["folder"], row["records"]) for row in below["names"]] == [("day/", True, 5)]
    entries = visitor.page("/lace/notes?group=u&app=log&under=day/")["names"]
    assert [row["name"] for row in entries] == [f"day/{number:04d}" for number in range(5)]


def test_a_coordinate_shows_its_tip_and_its_writers(visitor: Visitor, world: World) -> None:
    page = visitor.page(f"/lace/notes/record/{world.records['second']}")
    assert [version["hash"] for version in page["versions"]] == [
        world.records[which] for which in ("third", "second", "first")
    ]
    assert not page["is_tip"]
    text = visitor.get(f"/lace/notes/record/{world.records['second']}").text
    assert "2 writers at one coordinate" in text
    assert world.ann in text
    assert world.bob in text


def test_a_name_shows_the_tip_that_get_shows_and_how_many_wrote_it(tmp_path: Path) -> None:
    keys = [lace.generate_key(), lace.generate_key()]
    place = {"group": "g", "app": "a"}
    with lace.open(tmp_path / "f.lace", create=True) as opened:
        opened.put(b"ours", **place, name="n", tai="1700000000:000000000", sign=keys[0])
        with opened.batch() as batch:
            for number in range(40):
                batch.put(b"%d" % number, **place, name="n", tai=f"{1_700_000_001 + number}:000000000", sign=keys[1])
        opened.put(b"alone", **place, name="one", tai="1700000000:000000000")
        ahead = opened.put(b"later", **place, name="ahead", tai="9999999999:000000000")
        expected = opened.tip("//g//a//n")
    inspected = open_all([tmp_path / "f.lace"])
    with inspecting(inspected) as inspector:
        visitor = Visitor.admitted(inspector)
        rows = {row["name"]: row for row in visitor.page("/lace/f?group=g&app=a")["names"]}
        text = visitor.get("/lace/f?group=g&app=a").text
        page = visitor.page(f"/lace/f/record/{expected.entry.hash}")
        unread = visitor.page(f"/lace/f/record/{ahead}")
    inspected.close()
    assert expected.entry.signer == keys[1].verifier
    for shown in (rows["n"], page):
        assert shown["tip"]["hash"] == expected.entry.hash
        assert [(one["signer"], one["tai"]) for one in shown["concurrent"]] == [
            (keys[0].verifier, "1700000000:000000000")
        ]
    assert page["is_tip"]
    assert (rows["one"]["concurrent"], rows["ahead"]["tip"]) == ([], None)
    assert (unread["tip"], unread["is_tip"]) == (None, False)
    assert text.count("2 writers") == text.count("no tip") == 1


def test_code_in_our_sentences_is_code_and_nothing_else_is_markup() -> None:
    assert prose("add `--x <b>`, or not") == "add <code>--x &lt;b&gt;</code>, or not"
    assert prose("plain & plain") == "plain &amp; plain"


def test_links_are_shown_both_ways(visitor: Visitor, world: World) -> None:
    page = visitor.page(f"/lace/notes/record/{world.records['second']}")
    assert page["links"] == [{"says": "replaces", "record": world.records["first"], "stored": True}]
    assert page["linked_from"] == [{"says": "replaces", "record": world.records["third"], "stored": True}]


def test_a_difference_shows_lines_that_came_and_went(visitor: Visitor, world: World) -> None:
    path = f"/lace/notes/compare?older={world.records['second']}&newer={world.records['third']}"
    lines = visitor.page(path)["difference"]
    assert "+Debt" in lines
    assert "-Seeing Like a State" in lines


def test_a_coordinate_works_where_a_hash_does(visitor: Visitor, world: World) -> None:
    page = visitor.page("/lace/notes/compare?older=//u//notes//books/reading&newer=//u//notes//books/reading")
    assert page["newer"] == world.records["third"]
    assert page["difference"] == []


@pytest.mark.parametrize(("which", "best"), [("json", "JSON"), ("image", "Image"), ("bytes", "Hex"), ("svg", "Text")])
def test_content_is_shown_in_the_way_that_fits_it(visitor: Visitor, world: World, which: str, best: str) -> None:
    text = visitor.get(f"/lace/notes/record/{world.records[which]}").text
    assert f'aria-current="true">{best}</a>' in text


def test_hostile_names_and_content_stay_text(visitor: Visitor, world: World) -> None:
    for path in ("/lace/notes?group=u&app=notes", f"/lace/notes/record/{world.records['hostile']}",
                 "/lace/notes/recent", "/lace/notes/rules"):  # fmt: skip
        text = visitor.get(path).text
        assert HOSTILE_NAME not in text
        assert HOSTILE_TEXT.decode() not in text
        assert "</textarea><script" not in text
    assert "⟨U+202E⟩txt.exe" in visitor.get(f"/lace/notes/record/{world.records['hostile']}").text


def test_hostile_parameters_stay_text(visitor: Visitor) -> None:
    bad = quote('"><script>alert(1)</script>')
    paths = [f"?group={bad}", f"?group=u&app=notes&under={bad}", f"?group=u&app={bad}", "?group=%ff&app=%00",
             f"/rules?rules={bad}", f"/rules?goal={bad}", f"/record/{bad}", f"/compare?older={bad}&newer={bad}",
             "/recent?before=-1", "/recent?before=99999999999999999999"]  # fmt: skip
    for path in [f"/lace/{bad}", *(f"/lace/notes{path}" for path in paths)]:
        answer = visitor.get(path)
        assert answer.status in (200, 400, 404), path
        assert "<script>alert" not in answer.text, path


def test_raw_content_cannot_run(visitor: Visitor, world: World) -> None:
    for which in ("hostile", "svg", "bytes", "json"):
        answer = visitor.get(f"/lace/notes/content/{world.records[which]}")
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
        assert answer.headers["x-content-type-options"] == "nosniff"
    image = visitor.get(f"/lace/notes/content/{world.records['image']}")
    assert image.headers["content-type"] == "image/png"
    assert image.headers["content-security-policy"].startswith("sandbox")


def test_what_is_not_there_is_said(visitor: Visitor) -> None:
    missing = visitor.get("/lace/notes/record/P." + "A" * 42 + "B.H3")
    assert missing.status in (400, 404)
    assert visitor.get("/lace/other").status == 404
    assert visitor.get("/lace/notes/record/nonsense").status == 400
    assert visitor.get("/lace/notes/content/nonsense").status == 404
    assert "There are no records" in visitor.get("/lace/notes?group=nobody").text


def test_errors_of_rules_have_their_places(visitor: Visitor) -> None:
    page = visitor.page("/lace/notes/rules?rules=" + quote("Good(P) :- Have(P).\nBad(P,V) :- Have(P).\nWorse(P :- x."))
    places = [(error["line"], error["column"]) for error in page["errors"]]
    assert places[0] == (2, 7)
    assert [line for line, _ in places] == [2, 3]
    assert page["rows"] == []


def test_rules_that_can_never_match_are_doubted(visitor: Visitor) -> None:
    page = visitor.page("/lace/notes/rules?rules=" + quote("Signed(P) :- Feild(P,'Signed-By',_,_)."))
    assert page["errors"] == []
    assert "Field" in page["doubts"][0]["message"] + page["doubts"][0]["advice"]
    assert page["doubts"][0]["line"] == 1
    assert visitor.page("/lace/notes/rules")["doubts"] == []


def test_rows_of_a_chosen_head_are_paged(visitor: Visitor) -> None:
    rules = "A(P) :- Have(P).\nB(P,N) :- Field(P,'Name',_,N)."
    page = visitor.page(f"/lace/notes/rules?rules={quote(rules)}&show=A/1")
    assert page["heads"] == {"A/1": 13, "B/2": 13}
    assert len(page["rows"]) == 13
    rest = visitor.page(f"/lace/notes/rules?rules={quote(rules)}&show=A/1&start=10")
    assert rest["rows"] == page["rows"][10:]
    assert page["plan"]


def test_why_and_why_not_are_answered(visitor: Visitor, world: World) -> None:
    rules = quote("Signed(P) :- Field(P,'Signed-By',_,_).")
    why = visitor.page(f"/lace/notes/rules?rules={rules}&goal=" + quote(f"Signed('{world.records['first']}')"))
    assert why["explanation"]["holds"] is True
    not_so = visitor.page(f"/lace/notes/rules?rules={rules}&goal=" + quote(f"Signed('{world.records['image']}')"))
    assert not_so["explanation"]["holds"] is False
    wrong = visitor.page(f"/lace/notes/rules?rules={rules}&goal=" + quote("Signed("))
    assert "error" in wrong["explanation"]


def test_a_form_gives_the_part_that_changes(visitor: Visitor) -> None:
    answer = visitor.post("/lace/notes/rules?format=fragment", {"rules": "A(P) :- Have(P)."})
    assert answer.text.startswith('<div id="outcome"')
    assert visitor.post("/lace/notes/rules", {"rules": "A(P) :- Have(P)."}).text.startswith("<!doctype html>")


def test_lists_go_on_where_the_page_before_ended(tmp_path: Path) -> None:
    world = make_world(tmp_path / "long.lace", log_entries=57)
    inspected = open_all([world.path], limits=InspectorLimits(page_rows=10, count_to=20))
    with inspecting(inspected) as running:
        visitor = Visitor.admitted(running)
        for start, kind in (("/lace/long?group=u&app=log&under=day/", "names"), ("/lace/long/recent", "records")):
            seen: list[str] = []
            path: str | None = start
            while path:
                page = visitor.page(path)
                assert len(page[kind]) <= 10
                seen += [row["name" if kind == "names" else "hash"] for row in page[kind]]
                path = page["next"]
            assert len(seen) == len(set(seen)) == (57 if kind == "names" else 65)
        assert visitor.page("/lace/long?group=u&app=log")["names"][0]["counted_all"] is False
    inspected.close()


def test_words_find_records_with_the_place_where_they_stand(visitor: Visitor, world: World) -> None:
    page = visitor.page("/lace/notes/find?q=power+brok*")
    assert [row["hash"] for row in page["records"]] == [world.records["third"], world.records["second"]]
    assert "Power Broker" in page["records"][0]["excerpt"]
    text = visitor.get("/lace/notes/find?q=power+brok*").text
    assert "<mark>Power</mark> <mark>Brok</mark>er" in text
    assert visitor.page("/lace/notes/find?q=nowhere")["records"] == []
    hostile = visitor.get("/lace/notes/find?q=script").text
    assert "<script>document" not in hostile
    for question in ("%22", "*", "AND", "NEAR(", "name:", "a%00b", "(((", "%22a%22b"):
        assert visitor.get(f"/lace/notes/find?q={question}").status == 200, question


def test_an_empty_lace_says_how_to_begin(tmp_path: Path) -> None:
    import lace

    lace.open(tmp_path / "empty.lace", create=True).close()
    inspected = open_all([tmp_path / "empty.lace"])
    with inspecting(inspected) as running:
        visitor = Visitor.admitted(running)
        assert "lace put" in visitor.get("/lace/empty").text
        assert visitor.page("/lace/empty/recent")["records"] == []
        assert "lace index" in visitor.get("/lace/empty/find?q=x").text
        assert visitor.page("/lace/empty/rules")["heads"] == {"Signed/2": 0, "Named/2": 0}
    inspected.close()


def test_characters_that_deceive_are_spelled_out() -> None:
    assert visible("a\u202eb\u200bc\x1b") == "a⟨U+202E⟩b⟨U+200B⟩c⟨U+001B⟩"
    assert tag("b", "\u202e") == "<b>⟨U+202E⟩</b>"


def test_times_are_shown_in_utc() -> None:
    from lace.inspector.widgets import utc

    assert utc(TAI.of_unix_ns(1483228800 * 10**9)) == "2017-01-01 00:00:00"
    assert utc("nonsense") == ""
