"""Stories of people who look into a lace, clicked through in a real Chromium.

Each leaves pictures in the folder that LACE_SCREENSHOTS names, if it names one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

import lace
from inspector.browser import LEFT_OUT, Reader, find_chromium, running_browser
from inspector.club import Club, home, make_club
from inspector.live import make_archive, meeting_place, run
from inspector.visiting import HOSTILE_NAME, World
from lace.inspector.inspected import open_all
from lace.inspector.serving import Inspector, inspecting

pytestmark = pytest.mark.long

Open = Callable[..., Reader]
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


CHROMIUM = find_chromium()
if CHROMIUM is None:
    pytest.skip(LEFT_OUT, allow_module_level=True)  # here, so that it is said in one line


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    assert CHROMIUM is not None
    with running_browser(CHROMIUM) as browser:
        yield browser


@pytest.fixture(scope="module")
def club(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Club]:
    folder = tmp_path_factory.mktemp("club")
    with home(folder):
        yield make_club(folder)


@pytest.fixture(scope="module")
def club_inspector(club: Club) -> Iterator[Inspector]:
    inspected = open_all([club.path])
    with inspecting(inspected) as running:
        yield running
    inspected.close()


@pytest.fixture
def at_club(chromium: Browser, club_inspector: Inspector) -> Iterator[Reader]:
    found = Reader(chromium, club_inspector.address, viewport={"width": 1280, "height": 900})
    yield found
    found.leave()


@pytest.fixture
def reader(chromium: Browser, inspector: Inspector) -> Iterator[Reader]:
    found = Reader(chromium, inspector.address)
    yield found
    found.leave()


def test_somebody_browses_from_a_group_down_to_a_record(reader: Reader) -> None:
    page = reader.page
    expect(page.get_by_role("heading", level=1)).to_have_text("notes")  # the only lace: no list of laces before it
    page.get_by_role("region", name="Groups and apps").get_by_role("row").filter(has_text="u").get_by_role(
        "link", name="notes", exact=True
    ).click()
    page.get_by_role("link", name="books/").click()
    row = page.get_by_role("row").filter(has_text="reading")
    expect(row).to_contain_text("2023-11-17")
    row.get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("reading")
    expect(page.locator(".verdict")).to_contain_text("verified")
    expect(page.locator(".verdict")).to_contain_text("contested")
    expect(page.get_by_role("region", name="Content as text")).to_contain_text("Debt")
    reader.picture("record")


def test_somebody_looks_at_content_in_every_way(reader: Reader, inspector: Inspector, world: World) -> None:
    page, base = reader.page, inspector.plain_address
    page.goto(f"{base}/lace/notes/record/{world.records['image']}")
    image = page.get_by_role("img", name="The image in this record")
    expect(image).to_be_visible()
    assert image.evaluate("image => image.naturalWidth") == 8
    page.get_by_role("link", name="Hex").click()
    expect(page.get_by_role("region", name="Content as hex")).to_contain_text("89 50 4e 47")
    page.goto(f"{base}/lace/notes/record/{world.records['json']}")
    expect(page.get_by_role("region", name="Content as json")).to_contain_text('"values"')
    page.get_by_role("link", name="Text").click()
    expect(page.get_by_role("region", name="Content as text")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert Path(download.value.path()).read_bytes().startswith(b'{"kind"')


def test_somebody_follows_links_both_ways(reader: Reader, inspector: Inspector, world: World) -> None:
    page = reader.page
    page.goto(f"{inspector.plain_address}/lace/notes/record/{world.records['second']}")
    page.locator("summary", has_text="Links").click()
    page.locator("svg.graph").scroll_into_view_if_needed()
    reader.picture("links")
    page.locator("svg.graph a").last.click()
    page.wait_for_url(f"**/record/{world.records['first']}")
    page.locator("summary", has_text="Links").click()
    page.get_by_role("region", name="Linked from").get_by_role("link").click()
    page.wait_for_url(f"**/record/{world.records['second']}")


def test_somebody_sees_who_changed_what(reader: Reader, inspector: Inspector, world: World) -> None:
    page = reader.page
    page.goto(f"{inspector.plain_address}/lace/notes/record/{world.records['third']}")
    expect(page.get_by_text("2 writers at one coordinate")).to_be_visible()
    page.get_by_role("link", name="what changed").first.click()
    expect(page.locator("ins", has_text="Debt")).to_be_visible()
    expect(page.locator("del", has_text="Seeing Like a State")).to_be_visible()
    reader.picture("difference")


def test_somebody_on_a_phone_asks_whether_a_peer_would_get_a_record(
    chromium: Browser, inspector: Inspector, world: World
) -> None:
    reader = Reader(chromium, inspector.address, **PHONE)
    page = reader.page
    page.goto(f"{inspector.plain_address}/lace/notes/record/{world.records['third']}")
    page.get_by_role("link", name="May somebody read this?").click()
    expect(page.get_by_text("a stranger", exact=False).first).to_be_in_viewport()
    expect(page.locator(".answer")).to_be_in_viewport()  # and not below three editors
    reader.picture("asked-on-a-phone")
    reader.leave()


def test_somebody_types_rules_and_sees_errors_and_rows_at_once(reader: Reader, inspector: Inspector) -> None:
    page = reader.page
    page.goto(f"{inspector.plain_address}/lace/notes/rules")
    rules = page.get_by_label("Rules", exact=True)
    rules.fill("Signed(P,Who) :- Field(P,'Signed-By',_,V).")
    expect(page.locator("#caret-note")).to_contain_text("1:10")
    expect(page.locator("#caret-note")).to_contain_text("variable Who")
    expect(page.locator(".editor-under mark")).to_have_text("Who")
    reader.picture("rules-error")
    rules.press("End")
    for _ in range(3):
        rules.press("Backspace")
    rules.press_sequentially("Who).")
    expect(page.get_by_role("region", name="Signed")).to_contain_text("//u//notes//books/reading")
    expect(page.locator(".editor-under mark")).to_have_count(0)
    expect(page.locator("#caret-note")).to_have_text("")
    reader.picture("rules-rows")
    page.reload()  # the address says what was typed
    expect(page.get_by_label("Rules", exact=True)).to_have_value("Signed(P,Who) :- Field(P,'Signed-By',_,Who).")


def test_somebody_asks_why_and_unfolds_a_proof(reader: Reader, inspector: Inspector) -> None:
    page = reader.page
    page.goto(f"{inspector.plain_address}/lace/notes/rules")
    page.get_by_label("Rules", exact=True).fill(
        "Seen(P) :- RecordLink(_,_,_,_,P).\nOld(P) :- Seen(P), Field(P,'Signed-By',_,_).\n"
    )
    page.get_by_role("region", name="Old").get_by_role("button", name="Why Old").first.click()
    proof = page.locator("ul.proof")
    expect(proof.get_by_text("RecordLink(").last).to_be_visible()
    expect(proof).to_contain_text("by Old(P) :-")
    reader.picture("why")
    fold = proof.locator("details details summary").first
    fold.click()
    expect(proof.get_by_text("by Seen(P)")).to_be_hidden()


def test_somebody_asks_why_not_and_gets_the_nearest_miss(reader: Reader, inspector: Inspector, world: World) -> None:
    page = reader.page
    page.goto(f"{inspector.plain_address}/lace/notes/rules")
    page.get_by_label("Rules", exact=True).fill("Wanted(P) :- Field(P,'App',_,'note'), Have(P).")
    expect(page.get_by_text("No Wanted fact holds")).to_be_visible()
    page.get_by_label("Why, or why not").fill(f"Wanted('{world.records['third']}')")
    page.get_by_role("button", name="Explain").click()
    expect(page.get_by_text("does not hold")).to_be_visible()
    expect(page.locator(".nearest")).to_contain_text("'notes'")
    reader.picture("why-not")


def test_somebody_looks_at_how_rules_were_evaluated(reader: Reader, inspector: Inspector) -> None:
    page = reader.page
    page.goto(f"{inspector.plain_address}/lace/notes/rules")
    page.locator("summary", has_text="Query plan").click()
    plan = page.get_by_role("region", name="Query plan")
    expect(plan).to_contain_text("Project Named")
    expect(plan).to_contain_text("13")
    reader.picture("plan")


def test_somebody_sees_what_a_viewer_sees_and_would_be_sent(reader: Reader, inspector: Inspector, world: World) -> None:
    page = reader.page
    page.goto(f"{inspector.plain_address}/lace/notes/exposure")
    page.locator("summary", has_text="What would be sent").click()
    expect(page.get_by_role("region", name="What would be sent")).to_be_visible()
    page.locator("summary", has_text="Under these rules").click()
    page.get_by_label("Exposed to the viewer").fill("none")
    expect(page.get_by_text("nothing will be sent").first).to_be_visible()
    reader.picture("exposure-none")
    page.get_by_label("Exposed to the viewer").fill("AllowQueryRecord(V,P) :- Field(P,'Signed-By',_,V).")
    page.get_by_label("Viewer", exact=True).fill(world.bob)
    expect(page.locator(".figure").first).to_contain_text("2")
    page.get_by_label("Their rules").fill("//u//notes//")
    expect(page.locator(".figure").nth(1)).to_contain_text("1would be sent")
    page.locator("summary", has_text="both sides compute").click()
    expect(page.get_by_role("region", name="Transcript")).to_contain_text("R.")
    reader.picture("exposure")
    page.get_by_label("Our rules").fill("SelectHave(P :- nonsense")
    expect(page.locator("#ours + *, .editor-under mark").first).to_be_attached()
    expect(page.locator(".notice.bad")).to_contain_text("Our rules")


def test_somebody_watches_a_node_while_a_peer_comes(chromium: Browser, tmp_path: Path) -> None:
    with meeting_place(tmp_path) as place:
        inspected = open_all([place.here, place.capture], node=f"unix:{place.watch}")
        with inspecting(inspected) as running:
            reader = Reader(chromium, running.address)
            page = reader.page
            page.get_by_role("link", name="Node", exact=True).click()
            expect(page.get_by_role("link", name="Link 1")).to_be_visible()
            lace.open(tmp_path / "late.lace", create=True).close()
            run("interlace", str(tmp_path / "late.lace"), f"unix:{place.address}", "--expose", "all")
            page.get_by_role("link", name="Link 2").wait_for()  # without reloading
            expect(page.get_by_role("row").filter(has_text="Link 2")).to_contain_text("13")
            reader.picture("node")
            page.get_by_role("link", name="Link 2").click()
            expect(page.get_by_text("Opens the stream").first).to_be_visible()
            reader.picture("conversation")
            page.get_by_role("link", name="Line of time").click()
            expect(page.get_by_label("Moment")).to_be_visible()
            page.goto(f"{running.plain_address}/capture/{place.capture.stem}")
            page.get_by_text("1 ExchangeOperand").first.click()
            expect(page.get_by_text("ExchangeOperand(").first).to_be_visible()
            titles = page.locator(".phase-head h3").all_inner_texts()
            assert [title.split(" ")[0] for title in titles[:3]] == ["Rules", "Plan", "Offers"]
            assert {"Records", "Close"} <= {title.split(" ")[0] for title in titles}
            expect(page.locator(".arrow.in").filter(has_text="13 records")).to_be_visible()
            drag_through_time(page)
            reader.picture("capture")
            reader.leave()
        inspected.close()


def drag_through_time(page: Page) -> None:
    """Where the line of time is dragged, both sets are as they were then; at the end, the rule that fired is told."""
    line, sides = page.get_by_label("Moment"), page.locator(".both .card")
    expect(sides.nth(0)).to_contain_text("Known to have13")
    expect(page.locator("#part-rule")).to_contain_text("SelectHave(P) :- Have(P)")
    line.fill("0")
    expect(sides.nth(0)).to_contain_text("Known to have0")
    expect(sides.nth(1)).to_contain_text("not agreed yet")
    assert "at=0" in page.url
    line.focus()
    page.keyboard.press("End")
    expect(sides.nth(1)).to_contain_text("E.")
    expect(page.locator(".sets li")).to_have_count(13)


def test_somebody_finds_a_record_by_what_it_says(reader: Reader, inspector: Inspector, world: World) -> None:
    page = reader.page
    page.goto(f"{inspector.plain_address}/lace/notes")
    page.get_by_label("Search notes").fill("debt")
    page.keyboard.press("Enter")
    expect(page.locator("mark")).to_have_text("Debt")
    reader.picture("find")
    page.get_by_role("region", name="Found").get_by_role("link").click()
    page.wait_for_url(f"**/record/{world.records['third']}")


def test_hostile_records_do_nothing(reader: Reader, inspector: Inspector, world: World) -> None:
    page, base = reader.page, inspector.plain_address
    shown = [f"/record/{world.records[which]}" for which in ("hostile", "svg")]
    for path in ["?group=u&app=notes", "/recent", *shown, "/rules", "/exposure"]:
        page.goto(f"{base}/lace/notes{path}")
        page.wait_for_load_state("networkidle")
        assert page.title() != "taken"
        assert page.locator("main img:not(.content-image)").count() == 0
    page.goto(f"{base}/lace/notes?group=u&app=notes")
    page.get_by_role("link", name=HOSTILE_NAME).click()
    reader.picture("hostile")


PATHS = ("/lace/notes", "/lace/notes/browse", "/lace/notes?group=u&app=log&under=day/", "/lace/notes/recent",
         "/lace/notes/rules", "/lace/notes/exposure", "/lace/notes/find?q=power",
         "/lace/notes/exposure?record={image}&ours=//u//notes//", "/lace/notes/record/{third}",
         "/lace/notes/record/{image}", "/lace/notes/compare?older={first}&newer={third}", "/lace/notes?group=nobody",
         "/lace/notes/rules?rules=Bad(")  # fmt: skip


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        ("desk", "dark"),
        ("phone", "light"),
        pytest.param("desk", "light", marks=pytest.mark.slow),
        pytest.param("phone", "dark", marks=pytest.mark.slow),
    ],
)
def test_nobody_is_shut_out(chromium: Browser, inspector: Inspector, world: World, scheme: str, width: str) -> None:
    """Every page is clean for axe and fits its screen, wide and narrow, light and dark."""
    how = PHONE if width == "phone" else {"viewport": {"width": 1200, "height": 900}}
    reader = Reader(chromium, inspector.address, color_scheme=scheme, **how)
    paths = [path.format(**world.records) for path in PATHS]
    assert_clean(reader, inspector.plain_address, paths, f"{width}-{scheme}")
    reader.leave()


def assert_clean(reader: Reader, base: str, paths: Sequence[str], called: str) -> None:
    """Axe finds nothing on these pages, and none is wider than the screen."""
    wrong: list[str] = []
    for number, path in enumerate(paths):
        answer = reader.page.goto(base + path)
        assert answer is not None
        if answer.status != 200:
            wrong.append(f"{path} answers {answer.status}")
        found = Axe().run(reader.page)
        if found.response["violations"]:
            wrong.append(f"{path}: {found.generate_report()}")
        wide = reader.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        if wide > 0:
            wrong.append(f"{path} is {wide} pixels too wide")
        reader.picture(f"{called}-{number}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("width", "scheme"), [("phone", "dark"), pytest.param("desk", "light", marks=pytest.mark.slow)]
)
def test_nodes_captures_and_archives_shut_out_nobody_either(
    chromium: Browser, tmp_path: Path, scheme: str, width: str
) -> None:
    pytest.importorskip("pyarrow")
    how = PHONE if width == "phone" else {"viewport": {"width": 1200, "height": 900}}
    archive = make_archive(tmp_path / "kept")
    with meeting_place(tmp_path) as place:
        inspected = open_all([place.here, place.capture, archive], node=f"unix:{place.watch}")
        with inspecting(inspected) as running:
            reader = Reader(chromium, running.address, color_scheme=scheme, **how)
            talk = f"/capture/{place.capture.name}"
            paths = ["/", "/node", "/node?link=1", talk, f"{talk}?start=999", "/archive/kept",
                     "/archive/kept?table=records", "/archive/kept?table=nothing"]  # fmt: skip
            links = reader.page.evaluate("Array.from(document.querySelectorAll('.banner nav a'), (a) => a.pathname)")
            assert {"/node", "/archive/kept"} <= set(links), links
            assert_clean(reader, running.plain_address, paths, f"live-{width}-{scheme}")
            reader.leave()
        inspected.close()


def test_somebody_uses_the_keyboard_alone(reader: Reader, inspector: Inspector) -> None:
    page = reader.page
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("g")
    page.keyboard.press("e")
    page.wait_for_url("**/exposure")
    page.keyboard.press("g")
    page.keyboard.press("b")
    page.wait_for_url("**/lace/notes/browse")
    for key, place in (("r", "rules"), ("n", "recent"), ("h", "notes")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(f"**/{place}")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("g r")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("/")
    page.keyboard.type("//u//notes//books/reading")
    page.keyboard.press("Enter")
    page.wait_for_url("**/record/*")
    page.goto(f"{inspector.plain_address}/lace/notes?group=u&app=log&under=day/")
    page.get_by_label("Start at a name").fill("day/0003")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="0003")).to_be_visible()
    expect(page.get_by_role("link", name="0002")).to_have_count(0)


def test_everything_works_without_a_script(chromium: Browser, inspector: Inspector) -> None:
    reader = Reader(chromium, inspector.address, java_script_enabled=False)
    page = reader.page
    page.goto(f"{inspector.plain_address}/lace/notes/rules")
    page.locator("textarea").fill("Old(P) :- RecordLink(_,_,_,_,P).")
    page.get_by_role("button", name="Evaluate").click()
    page.get_by_role("button", name="Why Old").first.click()
    expect(page.locator("ul.proof")).to_contain_text("RecordLink(")
    reader.leave()


def test_a_file_that_was_sent_opens_from_disk_and_runs_nothing(chromium: Browser, world: World, tmp_path: Path) -> None:
    out = tmp_path / "out.html"
    assert run("inspect", str(world.path), "--html", str(out)).returncode == 0
    page = chromium.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: asked.append(dialog.message))
    page.goto(out.as_uri())
    for summary in page.locator("summary").all():
        summary.click()
    assert page.title().startswith("notes")
    assert asked == [out.as_uri()]
    page.close()


def test_somebody_filters_an_exported_file_on_a_phone(chromium: Browser, club: Club, tmp_path: Path) -> None:
    out = tmp_path / "club.html"
    assert run("inspect", str(club.path), "--html", str(out)).returncode == 0
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(out.as_uri())
    page.get_by_label("Filter").fill("mast wire")
    expect(page.get_by_role("status")).to_have_text(f"1 of {page.locator('details.record').count()}")
    page.locator("details.record:visible summary").click()
    expect(page.get_by_text("The mast needs new wire.")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    assert Axe().run(page).response["violations"] == []
    assert asked == [out.as_uri()]
    page.close()


def test_anna_opens_the_lace_of_her_club(at_club: Reader, club: Club) -> None:
    page = at_club.page
    expect(page.locator(".verdict")).to_contain_text("signed by 3 keys")
    expect(page.locator("#contested")).to_contain_text("now by bob")
    expect(page.locator("#contested")).to_contain_text("also by anna")
    expect(page.locator("#incomplete")).to_contain_text("1 of 4 parts")
    expect(page.get_by_role("img", name="Growth over time")).to_be_visible()
    for said in ("not connected", "never met", "founded by anna", '"Carla"'):
        expect(page.get_by_text(said).first).to_be_visible()
    assert "V." not in page.locator("main").inner_text()  # names; a whole key is there on demand only
    expect(page.locator(f'[title="{club.bob}"]').first).to_have_text("bob")
    at_club.picture("home")
    page.locator("#contested a").first.click()
    expect(page.locator(".verdict")).to_contain_text("signed by bob")
    expect(page.locator(".verdict")).to_contain_text("contested also written by anna")
    expect(page.locator("#content")).to_be_in_viewport()
    expect(page.get_by_role("region", name="Facts")).to_be_hidden()
    at_club.picture("record-contested")


def test_a_long_history_has_a_total_and_pages(at_club: Reader, club: Club) -> None:
    page = at_club.page
    page.goto(f"{at_club.start}/lace/club/record/{club.log}")
    history = page.get_by_role("region", name="Versions, newest first")
    expect(page.get_by_text("47 versions")).to_be_visible()
    seen: list[str] = []
    while True:
        seen += [str(one.get_attribute("title")) for one in history.locator("tbody td:first-child a").all()]
        older = page.get_by_role("link", name="Older")
        if not older.count():
            break
        older.click()
        page.wait_for_url(f"**versions={len(seen)}*")
    assert len(seen) == len(set(seen)) == 47
    page.goto(f"{at_club.start}/lace/club/record/{club.plan}")
    expect(page.locator(".verdict")).to_contain_text("withdrawn by bob")


def test_anna_asks_who_may_read_what_and_sends_the_link(at_club: Reader, chromium: Browser) -> None:
    page = at_club.page
    page.goto(f"{at_club.start}/lace/club/exposure")
    page.get_by_label("Viewer", exact=True).fill("bob")
    page.get_by_label("Record", exact=True).fill("//club//notes//boat")
    expect(page.locator(".answer")).to_contain_text("Yes")
    at_club.picture("question-yes")
    page.get_by_label("Viewer", exact=True).fill("")
    expect(page.locator(".answer")).to_contain_text("No")
    expect(page.locator("#answer")).to_contain_text("at the gate “exposed to the other side”")
    at_club.picture("question-no")
    assert "record=%2F%2Fclub%2F%2Fnotes%2F%2Fboat" in page.url
    at_club.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    page.goto(str(page.evaluate("navigator.clipboard.readText()")))
    expect(page.locator(".answer")).to_contain_text("No")
    page.get_by_label("Viewer", exact=True).fill("bbo")
    expect(page.get_by_text("did you mean bob?")).to_be_visible()


def test_words_without_an_index_find_names_and_a_coordinate_leads_straight_to_it(at_club: Reader) -> None:
    page = at_club.page
    page.get_by_label("Search club").fill("trips 2026")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Found by name").get_by_role("row")).to_have_count(13)
    page.get_by_label("Search club").fill("//club//notes//trips")
    page.keyboard.press("Enter")
    page.wait_for_url("**under=trips*")
    page.get_by_label("Search club").fill("//club//notes//bota")
    page.keyboard.press("Enter")
    expect(page.get_by_text("There is nothing at //club//notes//bota")).to_be_visible()
    page.get_by_role("link", name="All of //club//notes").click()
    expect(page.get_by_role("row").filter(has_text="plan")).to_contain_text("withdrawn")


@pytest.mark.parametrize(("width", "scheme"), [("phone", "dark"), ("desk", "light"), ("desk", "dark")])
def test_the_club_shuts_out_nobody(chromium: Browser, club: Club, club_inspector: Inspector, width: str,
                                   scheme: str) -> None:  # fmt: skip
    how = PHONE if width == "phone" else {"viewport": {"width": 1280, "height": 900}}
    reader = Reader(chromium, club_inspector.address, color_scheme=scheme, **how)
    paths = ["/lace/club", f"/lace/club/record/{club.boat}", f"/lace/club/record/{club.plan}",
             "/lace/club/exposure?viewer=bob&record=//club//notes//boat", "/lace/club/find?q=trips"]  # fmt: skip
    assert_clean(reader, club_inspector.plain_address, paths, f"club-{width}-{scheme}")
    reader.leave()
