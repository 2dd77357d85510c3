"""The page in a real Chromium: what a visitor clicks through, and whether everybody can use it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playground_server import server

from inspector.browser import PICTURES, TO_GET_ONE, Reader, find_chromium, running_browser

LEFT_OUT = f"no Chromium here, so the playground was not clicked through ({TO_GET_ONE})"
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


def visit(browser: Any, address: str, **how: Any) -> Reader:
    reader = Reader(browser, address, **how)
    reader.page.set_default_timeout(READY_MS)
    reader.page.wait_for_selector("#status.ready")
    return reader


def exchange(reader: Reader) -> str:
    """Press the button and read how it ended."""
    before = reader.page.inner_text("#talk-note") if reader.page.is_visible("#talk") else ""
    reader.page.click("#exchange:enabled")
    reader.page.wait_for_function("before => document.getElementById('talk-note').textContent !== before", arg=before)
    return reader.page.inner_text("#ended")


def names(reader: Reader, side: int) -> list[str]:
    return reader.page.locator(f"#side-{side} .records .name").all_inner_texts()


@pytest.mark.long
def test_a_visitor_exchanges_asks_why_not_breaks_the_wire_and_sends_a_link(browser: Any, address: str) -> None:
    reader = visit(browser, address)
    page = reader.page
    assert names(reader, 1) == ["dumplings", "today"]  # there before Python was: first.json
    assert exchange(reader).count("complete") == 2
    assert names(reader, 0) == ["soup", "bread", "monday", "dumplings"]
    assert names(reader, 1) == ["dumplings", "today", "soup", "bread"]

    page.get_by_role("button", name="Why is monday not here?").click()
    page.wait_for_selector("#why:not([hidden])")
    assert "It stops at Ada: this side's own rules do not select it" in page.inner_text("#gates")
    assert page.evaluate("document.activeElement.id") == "why"

    page.click("#anew")
    page.wait_for_selector("#talk", state="hidden")
    page.click("#cut")
    page.fill("#seed", "3")
    page.dispatch_event("#seed", "change")
    assert "broken off" in exchange(reader)
    assert "The wire was cut after" in page.inner_text("#ended")
    page.click("#cut")
    assert exchange(reader).count("complete") == 2  # what the cut kept back comes now

    page.click("#share")
    page.wait_for_function("() => document.getElementById('shared').textContent")  # the address is written by then
    link = page.url
    assert "#" in link
    again = visit(browser, link)
    again.page.wait_for_selector("#talk:not([hidden])")
    assert names(again, 1) == names(reader, 1)
    assert again.page.inner_text("#items") == page.inner_text("#items")
    again.leave()
    reader.leave()


@pytest.mark.slow
def test_errors_follow_the_typing_and_keep_the_exchange_from_being_played(browser: Any, address: str) -> None:
    reader = visit(browser, address)
    page = reader.page
    page.fill("#select-0", "SelectHave(P) :- Have(P)\nSelectAdvertised(P,S) :- Advertised(P,S).")
    page.wait_for_selector("#side-0 .found li")
    assert page.locator("#side-0 .found li").first.inner_text().startswith("1:")
    assert page.is_disabled("#exchange")
    assert page.get_attribute("#select-0", "aria-invalid") == "true"
    page.fill("#select-0", "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S).")
    page.wait_for_selector("#side-0 .found li", state="detached")
    page.click("#side-0 summary:has-text('Add a record')")
    page.fill("#side-0 form [name=name]", "<b>pie</b>")
    page.fill("#side-0 form [name=text]", "Apples.")
    page.keyboard.press("Enter")
    page.wait_for_selector("#side-0 .records >> text=<b>pie</b>")
    exchange(reader)
    assert "<b>pie</b>" in names(reader, 1)
    reader.leave()


@pytest.mark.slow
def test_a_link_that_holds_no_scene_is_told_and_the_page_goes_on(browser: Any, address: str) -> None:
    for text in ("nonsense", "AAAA", "q1YqTi3OKSlKTQEA"):
        reader = visit(browser, f"{address}#{text}")
        reader.page.wait_for_selector("#trouble .notice")
        reader.page.select_option("#preset", "1")
        reader.page.wait_for_selector("#trouble .notice", state="detached")
        assert exchange(reader).count("complete") == 2
        reader.leave()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "how"),
    [("desktop", {}), ("phone", PHONE), ("dark", {"color_scheme": "dark"})],
    ids=lambda value: str(value)[:7],
)
def test_the_page_is_clean_for_everybody_and_fits(browser: Any, address: str, name: str, how: dict[str, Any]) -> None:
    from axe_playwright_python.sync_playwright import Axe

    reader = visit(browser, address, **how)
    page = reader.page
    exchange(reader)
    page.click("button:has-text('Why not?') >> nth=0")
    page.wait_for_selector("#why:not([hidden])")
    page.check("#side-0 input[value=rules]")
    assert "AllowQueryRecord" in page.input_value("#expose_rules-0")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.wait_for_timeout(600)
    exchange(reader)
    found = Axe().run(page, options={"rules": {"page-has-heading-one": {"enabled": True}}})
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"playground-{name}.png")
    reader.leave()


@pytest.mark.slow
def test_the_keyboard_alone_is_enough(browser: Any, address: str) -> None:
    reader = visit(browser, address)
    page = reader.page
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "exchange":
            break
    page.keyboard.press("Enter")
    page.wait_for_selector("#talk:not([hidden])")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.get_attribute("#cut", "aria-pressed") == "true"
    reader.leave()
