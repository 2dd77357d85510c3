"""The page in a real Chromium: what a visitor clicks through, and whether everybody can use it.

Most stories are told before Python is there, by what was recorded when the folder was built: that is how a visitor
begins, and it costs no start of Python.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playground_server import server

from inspector.browser import TO_GET_ONE, Reader, find_chromium, running_browser

pytestmark = pytest.mark.long
LEFT_OUT = f"no Chromium here, so the playground was not clicked through ({TO_GET_ONE})"
DESK = {"width": 1280, "height": 1000}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
READY_MS = 90_000  # on a machine that does much else


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with server(folder) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    executable = find_chromium()
    if executable is None:
        pytest.skip(LEFT_OUT)
    with running_browser(executable) as browser:
        yield browser


def simulated(*words: str) -> str:
    """What `lace simulate` says of a scene that passes."""
    run = [sys.executable, "-m", "lace.cli", "simulate", *words]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout


class Visitor(Reader):
    """Somebody at the playground, who wants to see things move at once."""

    def __init__(self, browser: Any, address: str, *, has_python: bool = False, **how: Any) -> None:
        super().__init__(browser, "about:blank", **{"reduced_motion": "reduce", "viewport": DESK, **how})
        self.page.set_default_timeout(READY_MS)
        if not has_python:
            self.context.route("**/lace.zip.packed", lambda _: None)  # it is on its way, and stays there
        self.page.goto(address)
        self.page.wait_for_selector("#lace-0 .records")

    def _require_local(self, request: Any) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "blob:http://127.0.0.1:", "about:")):
            self.troubles.append(f"asked elsewhere: {request.url}")

    def leave(self) -> None:
        """Go away, and let what was held back go."""
        self.context.unroute_all(behavior="ignoreErrors")
        super().leave()

    def scene(self, title: str) -> None:
        self.page.select_option("#preset", label=title)
        self.page.wait_for_function("() => !document.body.classList.contains('busy')")

    def exchange(self) -> str:
        """Press the button and read the verdict."""
        self.page.click("#exchange:enabled")
        self.page.wait_for_function("() => !document.body.classList.contains('busy')")
        return self.verdict()

    def verdict(self) -> str:
        return self.page.inner_text("#ended")

    def records(self, lace: int) -> list[str]:
        return self.page.locator(f"#lace-{lace} .records:not(.absent) .name").all_inner_texts()

    def story(self) -> list[str]:
        return self.page.locator("#moments .what").all_inner_texts()

    def dots(self, lace: int) -> int:
        return self.page.locator(f"[data-node='{lace}'] .dot").count()


@pytest.fixture
def visitor(browser: Any, address: str) -> Iterator[Visitor]:
    visitor = Visitor(browser, address)
    yield visitor
    visitor.leave()


# --- before Python is there -----------------------------------------------------------------------------------------


def test_the_button_works_while_python_is_still_loaded_and_a_bar_says_how_far_that_is(visitor: Visitor) -> None:
    assert visitor.records(1) == ["dumplings", "today"]
    assert visitor.exchange().startswith("Converged Both sides have every record that the rules let through.")
    assert visitor.records(0) == ["soup", "bread", "monday", "dumplings"]
    assert visitor.records(1) == ["dumplings", "today", "soup", "bread"]
    visitor.page.wait_for_function("() => document.getElementById('loading').value > 0")
    assert "recordings until then" in visitor.page.inner_text("#status")
    assert not visitor.page.locator("#status.ready").count()


@pytest.mark.parametrize(
    ("title", "verdict"),
    [
        ("One asks for everything", "Converged"),
        ("Members only", "Converged"),
        ("A block travels", "Converged"),
        ("The newest three", "Converged"),
        ("Three in a chain", "Not finished"),
        ("A hostile one among four", "Not finished"),
        ("Six, and a network in two halves", "Not finished"),
    ],
)
def test_the_first_exchange_of_every_scene_is_there_at_once(visitor: Visitor, title: str, verdict: str) -> None:
    visitor.scene(title)
    assert visitor.exchange().startswith(verdict)
    assert visitor.page.locator("#guide li").count() == 3
    assert visitor.story()


def test_an_exchange_is_told_and_seen_step_by_step(visitor: Visitor) -> None:
    visitor.exchange()
    story = visitor.story()
    assert story[0] == "Ada tells Ben by which rules Ada exchanges."
    assert "soup crosses from Ada to Ben." in story
    assert story[-1] == "Ada and Ben have nothing more to ask of each other."
    assert (visitor.dots(0), visitor.dots(1)) == (4, 4)
    visitor.page.click("#first-step")
    assert (visitor.dots(0), visitor.dots(1)) == (3, 2)
    while "crosses" not in visitor.page.locator(".moments .now .what").all_inner_texts()[:1].__str__():
        visitor.page.click("#next-step")
    assert (visitor.dots(0), visitor.dots(1)) == (4, 4)  # all three records arrive in one step
    assert visitor.page.locator(".flying").count() == 3
    visitor.page.click("#back-step")
    assert (visitor.dots(0), visitor.dots(1)) == (3, 2)


def test_a_cut_is_a_spark_and_its_story_says_what_stays_and_what_comes_later(visitor: Visitor) -> None:
    visitor.page.click("#cut")
    verdict = visitor.exchange()
    assert verdict.startswith(
        "Not finished 3 records are still to come: soup to Ben, bread to Ben and dumplings to Ada."
    )
    assert "complete" not in visitor.page.inner_text("main").lower().replace("completely", "")
    assert "The wire breaks after 2.2 kB of what Ada says." in visitor.story()
    assert visitor.story()[-1].endswith("soup, bread and dumplings will come with the next exchange.")
    visitor.page.click(".moment.cut")
    assert visitor.page.locator(".spark").count() == 1
    assert visitor.page.locator(".flying.lost").count() == 3
    assert visitor.page.locator("#guide li").nth(2).get_attribute("class") == "is-done"


def test_a_flipped_bit_turns_red(visitor: Visitor) -> None:
    visitor.page.click("#corrupt")
    visitor.exchange()
    assert any(line.startswith("One bit flips on its way from") for line in visitor.story())
    visitor.page.click(".moment.flip")
    assert visitor.page.locator("#canvas .red").count() == 1
    assert visitor.page.locator("#canvas .flash").count() == 1


def test_what_a_hostile_lace_spoils_is_refused_and_comes_another_way(visitor: Visitor) -> None:
    visitor.scene("A hostile one among four")
    assert visitor.page.inner_text("#lace-1 .lace-head .badge") == "tampers"
    visitor.exchange()
    spoiled = "rumour reaches Ada spoiled: its bytes do not match its hash. Ada does not store it."
    assert spoiled in visitor.story()
    visitor.page.click(f"text={spoiled}")
    assert visitor.page.locator("#canvas .flying.red").count() >= 1
    assert visitor.exchange().startswith("Converged Every honest lace has")
    assert visitor.records(0) == ["tide", "wind", "seals"]


def test_a_scene_is_run_as_a_test(visitor: Visitor) -> None:
    visitor.scene("A hostile one among four")
    visitor.page.click("#simulate")
    assert visitor.page.inner_text("#tested .notice.good").startswith("Passed.")
    assert "Cleo has //club//notes//tide" in visitor.page.inner_text("#expected")
    visitor.page.click("#forget")
    assert visitor.page.inner_text("#expected") == ""
    visitor.page.click("#expect")
    assert "Ada does not have //club//notes//rumour" in visitor.page.inner_text("#expected")
    assert not visitor.page.is_visible("#anew")


def test_why_is_answered_on_the_card_of_the_record(visitor: Visitor) -> None:
    visitor.exchange()
    visitor.page.get_by_role("button", name="Why is monday not with Ben?").click()
    card = visitor.page.locator("#lace-1 .absent li", has_text="monday").first
    card.locator(".verdict").wait_for()
    assert card.locator(".verdict").inner_text() == "It stops at Ada: this side's own rules do not select it."
    assert "Let the rules of Ada select everything in //ada//diary." in card.inner_text()
    assert visitor.page.evaluate("document.activeElement.className") == "why"
    assert visitor.page.locator("#guide .is-done").count() == 2


def test_links_are_drawn_by_hand_and_taken_down(visitor: Visitor) -> None:
    visitor.scene("Three in a chain")
    page = visitor.page
    assert page.locator("#canvas .link").count() == 2
    page.locator("#canvas").scroll_into_view_if_needed()
    boxes = [page.locator(f"[data-node='{number}'] .body").bounding_box() for number in (0, 2)]
    (x, y), (to_x, to_y) = ((box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in boxes if box)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move((x + to_x) / 2, (y + to_y) / 2)
    page.mouse.move(to_x, to_y)
    page.mouse.up()
    assert page.locator("#canvas .link").count() == 3
    assert page.inner_text("#link-name") == "Ada – Cleo"
    page.click("#link-down")
    assert page.locator("#canvas .link.down").count() == 1
    page.click("#link-remove")
    assert page.locator("#canvas .link").count() == 2
    page.focus("[data-link='1-2']")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.click("text=Take it down")
    assert (
        page.get_attribute("[data-link='1-2']", "aria-label") == "Link between Ben and Cleo, down in the next exchange"
    )


def test_a_partition_follows_from_the_seed_and_is_mended(visitor: Visitor) -> None:
    visitor.scene("Six, and a network in two halves")
    page = visitor.page
    down = "[...document.querySelectorAll('.link.down')].map((one) => one.dataset.link).join()"
    page.click("#partition")
    assert page.evaluate(down) == ""
    page.click("#partition")
    first = page.evaluate(down)
    page.click("#partition")
    page.click("#partition")
    assert page.evaluate(down) == first != ""


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("dark", {"color_scheme": "dark"}),
        pytest.param("desktop", {}, marks=pytest.mark.slow),
        pytest.param("phone", PHONE, marks=pytest.mark.slow),
    ],
)
def test_the_page_is_clean_for_everybody_and_fits(browser: Any, address: str, name: str, how: dict[str, Any]) -> None:
    from axe_playwright_python.sync_playwright import Axe

    visitor = Visitor(browser, address, **how)
    for title in ("One asks for everything", "A hostile one among four"):
        visitor.scene(title)
        visitor.exchange()
        if title.startswith("One"):
            visitor.page.get_by_role("button", name="Why is monday not with Ben?").click()
            visitor.page.wait_for_selector(".why .verdict")
        visitor.page.evaluate(
            "document.querySelectorAll('details').forEach((one) => { one.open = !one.closest('.more-of'); })"
        )
        found = Axe().run(visitor.page, options={"rules": {"page-has-heading-one": {"enabled": True}}})
        assert found.violations_count == 0, found.generate_report()
        assert visitor.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        visitor.picture(f"playground-{name}-{title.split()[0].lower()}")
    visitor.leave()


def test_the_keyboard_alone_is_enough(visitor: Visitor) -> None:
    page = visitor.page
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "exchange":
            break
    page.keyboard.press("Enter")
    page.wait_for_selector("#talk:not([hidden])")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.get_attribute("#cut", "aria-pressed") == "true"


# --- with Python ----------------------------------------------------------------------------------------------------


def test_a_visitor_follows_advice_breaks_rules_and_takes_the_scene_home_as_a_test(
    browser: Any, address: str, tmp_path: Path
) -> None:
    visitor = Visitor(browser, address, has_python=True)
    page = visitor.page
    page.wait_for_selector("#status.ready")
    visitor.exchange()

    for side in ("Ada", "Ben"):  # the advice is followed until monday crosses
        page.get_by_role("button", name="Why is monday not with Ben?").click()
        page.click(f"text=Let the rules of {side} select everything in //ada//diary.")
        page.wait_for_function("() => document.getElementById('anew').hidden")
        page.wait_for_timeout(400)  # what was typed is asked about after a moment
        visitor.exchange()
    assert "monday" in visitor.records(1)

    rules = page.input_value("#select-0")
    page.fill("#select-0", rules.replace("Field(P,'Group',_,'club')", "Feld(P,'Group',_,'club')"))
    page.wait_for_selector("#lace-0 .found .doubt")
    assert "did you mean Field?" in page.locator("#lace-0 .found li").first.inner_text()
    page.fill("#select-0", "SelectHave(P) :- Have(P)\nSelectAdvertised(P,S) :- Advertised(P,S).")
    page.wait_for_selector("#lace-0 .found li:not(.doubt)")
    assert page.is_disabled("#exchange")
    assert page.get_attribute("#select-0", "aria-invalid") == "true"
    page.fill("#select-0", "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S).")
    page.wait_for_selector("#lace-0 .found li", state="detached")

    page.click("#lace-0 summary:has-text('Add a record')")
    page.fill("#lace-0 form [name=group]", "club")
    page.fill("#lace-0 form [name=app]", "recipes")
    page.fill("#lace-0 form [name=name]", "<b>pie</b>")
    page.fill("#lace-0 form [name=text]", "Apples.")
    page.keyboard.press("Enter")
    page.wait_for_selector("#lace-0 .records >> text=<b>pie</b>")
    page.click("#add-lace")
    page.wait_for_selector("#lace-2 .found", state="attached")
    assert "Converged" in (visitor.exchange(), visitor.exchange())[1]
    assert "<b>pie</b>" in visitor.records(2)
    visitor.picture("playground-three")

    with page.expect_download() as saving:
        page.click("#save")
    saving.value.save_as(tmp_path / "scene.json")
    played = simulated(str(tmp_path / "scene.json"), "--json")
    assert "//club//recipes//<b>pie</b>" in json.loads(played)["holds"]["Cleo"]
    page.click("#share")
    page.wait_for_function("() => document.getElementById('shared').textContent")  # the address is written by then
    assert "passed: 3 laces" in simulated(page.url)

    page.wait_for_selector("#status.kept")
    visitor.context.set_offline(True)
    page.reload()
    page.wait_for_selector("#lace-2 .records >> text=<b>pie</b>")
    visitor.leave()


@pytest.mark.slow
def test_a_link_that_holds_no_scene_is_told_and_the_page_goes_on(browser: Any, address: str) -> None:
    for text in ("nonsense", "AAAA", "q1YqTi3OKSlKTQEA"):
        visitor = Visitor(browser, f"{address}#{text}", has_python=True)
        visitor.page.wait_for_selector("#trouble .notice")
        visitor.scene("One asks for everything")
        visitor.page.wait_for_selector("#trouble .notice", state="detached")
        assert visitor.exchange().startswith("Converged")
        visitor.leave()
