"""The rule blocks of the documentation derive what their text says, over the facts that the page gives them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lace
from lace.datalog.language.parser import parse_facts
from lace.limits import EngineLimits

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"<!-- facts\n(?P<facts>.*?)-->\n+```lace\n(?P<rules>.*?)```", re.DOTALL)
DERIVED = {
    ("rules.md", "Signed(P,V)"): [("boat", "anna")],
    ("rules.md", "Newest(P)"): [("boat",), ("oars",)],
    ("rules.md", "Top(P)"): [("boat-2",), ("boat-3",), ("boat-4",), ("oars-1",)],
    ("rules.md", "Blocked(V)"): [("mallory",)],
    ("rules.md", "Selected(P)"): [("claim",), ("original",), ("photo",)],
    ("policy.md", "SelectHave(P)"): [("boat",), ("film",), ("part",)],
    ("policy.md", "SelectAdvertised(P,S)"): [("oars", "bob")],
}


def blocks(page: str) -> list[re.Match[str]]:
    return list(BLOCK.finditer((DOCS / page).read_text(encoding="utf-8")))


@pytest.mark.parametrize(("page", "goal"), DERIVED)
def test_a_rule_block_of_a_page_derives_these_rows(page: str, goal: str) -> None:
    predicate = goal.partition("(")[0]
    block = [one for one in blocks(page) if re.search(rf"^{predicate}\(", one["rules"], re.MULTILINE)][-1]
    facts = list(parse_facts(block["facts"], name=page, limits=EngineLimits()))
    assert sorted(lace.query(facts, block["rules"], goal).rows()) == DERIVED[page, goal]


def test_every_rule_block_with_facts_is_in_this_list() -> None:
    pages = {path.name for path in DOCS.rglob("*.md") if blocks(str(path.relative_to(DOCS)))}
    assert pages == {page for page, _ in DERIVED}
    assert len(blocks("rules.md")) == 5
