"""`lace inspect --html`: one file that needs nothing and runs nothing."""

from __future__ import annotations

from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from inspector.live import run
from inspector.visiting import HOSTILE_TEXT, World
from lace.inspector.exporting import script_hash


class Gathered(HTMLParser):
    """The elements and addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action")]


def exported(tmp_path: Path, *words: str) -> str:
    out = tmp_path / "out.html"
    done = run("inspect", *words, "--html", str(out))
    assert done.returncode == 0, done.stderr
    return out.read_text()


def require_self_contained(text: str) -> None:
    found = Gathered(text)
    assert not {"link", "iframe", "object", "form"} & set(found.elements)
    scripts = text.split("<script>")[1:]
    assert len(scripts) == found.elements.count("script") <= 1
    for script in scripts:  # the one that the file's policy names, and no other
        allowed = script_hash(script.partition("</script>")[0])
        assert f"script-src {allowed}" in unescape(text.partition("</head>")[0])
    assert all(address.startswith("#") for address in found.addresses)
    assert "url(" not in text
    assert "@import" not in text


@pytest.mark.long
def test_a_lace_becomes_one_file_with_every_record(tmp_path: Path, world: World) -> None:
    text = exported(tmp_path, str(world.path))
    require_self_contained(text)
    for record in world.records.values():
        assert f'id="{record}"' in text
    assert f'href="#{world.records["first"]}"' in text
    assert "The Power Broker" in text
    assert HOSTILE_TEXT.decode() not in text


@pytest.mark.long
def test_an_explanation_becomes_one_file(tmp_path: Path, world: World) -> None:
    words = ["--rules", "Signed(P) :- Field(P,'Signed-By',_,_).", "--goal", f"Signed('{world.records['first']}')"]
    text = exported(tmp_path, str(world.path), *words)
    require_self_contained(text)
    assert "by <code>Signed(P) :-" in text
    words[-1] = f"Signed('{world.records['image']}')"
    assert "does not hold" in exported(tmp_path, str(world.path), *words)


@pytest.mark.long
def test_options_that_make_no_sense_are_refused(tmp_path: Path, world: World) -> None:
    for words in (
        ["--rules", "A(P) :- Have(P)."],
        ["--goal", "A(P)"],
        ["--rules", "A(P) :- Have(P).", "--goal", "A(P)"],
    ):
        assert run("inspect", str(world.path), *words).returncode == 2
    done = run("inspect", str(world.path), "--rules", "A(P :-", "--goal", "A(P)", "--html", str(tmp_path / "no.html"))
    assert done.returncode != 0
    assert not (tmp_path / "no.html").exists()
