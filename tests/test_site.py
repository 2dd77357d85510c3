"""The site as a reader gets it: opened from its folder in a real Chromium, searched, and looked over by axe."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from inspector.browser import TO_GET_ONE, find_chromium, running_browser

ROOT = Path(__file__).parent.parent
TOOLS = str(ROOT / "tools")
if TOOLS not in sys.path:
    sys.path.append(TOOLS)

import make_site  # noqa: E402  (a tool, which is found by now)

pytestmark = pytest.mark.long

KINDS = ("index", "howto/revoking", "rules", "architecture", "benchmarks", "decisions/index", "inspector")
SCREENS = {
    "wide and light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "phone and dark": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    make_site.build(folder)
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    executable = find_chromium()
    if executable is None:
        pytest.skip(f"no Chromium here, so the site was not looked at ({TO_GET_ONE})")
    with running_browser(executable) as browser:
        yield browser


def visit(browser: Any, site: Path, page: str, troubles: list[str], **how: Any) -> Any:
    """A page from its folder; whatever it asks of others, and every fault of its scripts, is noted."""
    context = browser.new_context(reduced_motion="reduce", **how)
    context.set_default_timeout(60_000)
    shown = context.new_page()
    shown.on("pageerror", lambda error: troubles.append(f"error: {error}"))
    shown.on("request", lambda asked: asked.url.startswith(site.as_uri()) or troubles.append(f"elsewhere: {asked.url}"))
    shown.goto(f"{site.as_uri()}/{page}.html")
    return shown


@pytest.mark.parametrize("screen", SCREENS)
def test_every_kind_of_page_is_accessible_and_fits_the_screen(browser: Any, site: Path, screen: str) -> None:
    troubles: list[str] = []
    shown = visit(browser, site, "index", troubles, **SCREENS[screen])
    for page in KINDS:
        shown.goto(f"{site.as_uri()}/{page}.html")
        found = Axe().run(shown, options={"preload": False}).response["violations"]  # it cannot fetch from file://
        troubles += [f"{page}: {one['id']} at {one['nodes'][0]['target']}" for one in found]
        if shown.evaluate("document.documentElement.scrollWidth > innerWidth"):
            troubles.append(f"{page} is wider than the screen")
    shown.context.close()
    assert troubles == []


SEARCHES = {
    "revoke a member": "howto/revoking.html",
    "back up": "howto/backup.html",
    "sync a folder": "howto/folder.html",
    "exit code": "errors.html",
    "IntCompare": "rules.html#intcompare",
    "invite": "howto/membership.html",
}


def test_the_search_finds_from_the_folder_what_people_ask_for(browser: Any, site: Path) -> None:
    troubles: list[str] = []
    shown = visit(browser, site, "spec/glossary", troubles)
    first = {}
    for asked in SEARCHES:
        shown.keyboard.press("/")
        shown.keyboard.type(asked)
        shown.wait_for_function(
            "asked => document.querySelector('#find').value === asked && document.querySelector('#found a')", arg=asked
        )
        shown.wait_for_timeout(50)
        first[asked] = shown.locator("#found a").first.get_attribute("href").removeprefix("../")
        shown.fill("#find", "")
        shown.evaluate("document.querySelector('#found ol').replaceChildren(); document.activeElement.blur()")
    assert {asked: there.split("#")[0] if "#" not in SEARCHES[asked] else there for asked, there in first.items()} == (
        SEARCHES
    )
    shown.keyboard.press("/")
    shown.keyboard.type("revoke a member")
    shown.wait_for_selector("#found a")
    shown.keyboard.press("Enter")
    shown.wait_for_url("**/howto/revoking.html*")
    shown.context.close()
    assert troubles == []


def test_a_search_that_finds_nothing_says_what_is_not_searched(browser: Any, site: Path) -> None:
    shown = visit(browser, site, "index", [])
    shown.fill("#find", "zxqj <i>vvvq")
    shown.wait_for_function("document.querySelector('#found-count').textContent.includes('not searched')")
    assert shown.locator("#found i").count() == 0
    shown.context.close()


def test_the_search_knows_neither_decisions_nor_the_generated_lists(site: Path) -> None:
    text = (site / "look/index.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("window.laceSearch=").rstrip().removesuffix(";"))
    addresses = {page[0] for page in index["pages"]}
    assert {"howto/revoking.html", "cli.html", "index.html"} - {"index.html"} <= addresses
    assert not [one for one in addresses if one.startswith(("decisions/", "benchmarks/", "api"))]


def test_llms_txt_names_every_page_of_the_navigation_beside_its_source(site: Path) -> None:
    text = (site / "llms.txt").read_text(encoding="utf-8")
    links = re.findall(r"^- \[.+\]\((.+)\): .+", text, re.MULTILINE)
    assert links == [source for section in make_site.sections() for source in section.sources]
    assert all((site / link).is_file() for link in links)


def test_two_builds_are_the_same_bytes(site: Path, tmp_path: Path) -> None:
    make_site.build(tmp_path / "again")
    names = sorted(path.relative_to(site) for path in site.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(tmp_path / "again") for path in (tmp_path / "again").rglob("*.*"))
    assert [name for name in names if (site / name).read_bytes() != (tmp_path / "again" / name).read_bytes()] == []


def test_a_link_that_leads_nowhere_stops_the_build(site: Path, tmp_path: Path) -> None:
    (tmp_path / "one.html").write_text('<h1 id="here"><a href="#here"></a><a href="#there"></a><img src="no.svg"></h1>')
    assert list(make_site.broken(tmp_path)) == [
        "one.html: #there names no place on that page",
        "one.html: no.svg does not exist",
    ]


def test_a_rule_block_carries_its_facts_and_runs_only_where_the_site_has_a_playground(tmp_path: Path) -> None:
    (tmp_path / "playground").mkdir()
    (tmp_path / "playground/docs.mjs").write_text("")
    make_site.build(tmp_path / "with", tmp_path / "playground")
    page = (tmp_path / "with/rules.html").read_text(encoding="utf-8")
    assert 'data-playground="playground"' in page
    assert 'data-language="lace" data-facts="Have(&#x27;boat&#x27;)\nField(' in page
    assert (tmp_path / "with/playground/docs.mjs").exists()
    make_site.build(tmp_path / "without")
    assert "data-playground" not in (tmp_path / "without/rules.html").read_text(encoding="utf-8")
