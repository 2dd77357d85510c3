"""Why, view, check, plan and status from Python: data with reasons and remedies, in the words of Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import lace
from lace.porcelain.pythonwords import in_python
from lace.porcelain.remotes import Remote, add_remote

SOURCES = Path(__file__).parents[2] / "src" / "lace"
OPTION = re.compile(r"--[a-z]|`lace [a-z]")
BOB = lace.generate_key().verifier


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[lace.Lace, lace.Lace]]:
    with lace.open(tmp_path / "a.lace", create=True) as first, lace.open(tmp_path / "b.lace", create=True) as second:
        yield first, second


def put(into: lace.Lace, name: str, app: str = "ding") -> lace.RecordHash:
    return into.put(name.encode(), group="u", app=app, name=name)


def test_why_names_the_gate_the_reason_and_a_remedy_that_works(pair: tuple[lace.Lace, lace.Lace]) -> None:
    record = put(pair[0], "1")
    walked = lace.why(*pair[:1], record, pair[1])
    assert walked.stopped is not None
    assert (walked.stopped.side, walked.stopped.passed) == ("here", False)
    assert 'expose="selected"' in walked.stopped.remedy
    assert lace.exchange(*pair).moved == 0
    assert lace.why(pair[0], record, pair[1], expose="selected").stopped is None
    assert lace.exchange(*pair, expose="selected").moved == 1
    gone = lace.why(pair[0], record, pair[1], expose="selected").stopped
    assert gone is not None
    assert gone.name == "missing"


def test_why_without_the_other_side_says_what_it_cannot_know(pair: tuple[lace.Lace, lace.Lace]) -> None:
    record = put(pair[0], "1")
    walked = lace.why(pair[0], "//u//ding//1", expose="all", there=BOB)
    assert (walked.record, walked.stopped) == (record, None)
    assert walked.unknown
    known = lace.why(pair[0], record, expose="all", their_select="//other//")
    assert known.stopped is not None
    assert "other side" in known.stopped.said


def test_why_of_a_record_that_only_the_peer_has_is_walked_from_there(pair: tuple[lace.Lace, lace.Lace]) -> None:
    record = put(pair[1], "1")
    walked = lace.why(pair[0], record, pair[1], their_expose="none")
    assert walked.stopped is not None
    assert walked.stopped.side == "there"
    assert lace.why(pair[0], record, pair[1], their_expose="all").stopped is None


def test_a_view_has_what_the_exposure_shows(pair: tuple[lace.Lace, lace.Lace]) -> None:
    shown, hidden = put(pair[0], "1"), put(pair[0], "2", app="private")
    seen = lace.view(pair[0], BOB, expose="selected", select="//u//ding//")
    assert (shown in seen, hidden in seen, len(seen)) == (True, False, 1)
    assert {fact.values[0] for fact in seen.facts()} == {shown}
    assert len(lace.view(pair[0], BOB)) == 0


def test_check_finds_errors_and_then_likely_mistakes() -> None:
    (error,) = lace.check("SelectHave(P) :- Have(Q).\nSelectAdvertised(P,S) :- Advertised(P,S).")
    assert (error.kind, error.line) == ("error", 1)
    (doubt,) = lace.check("Answer(P) :- Feild(P,'App',_,'x').")
    assert doubt.kind == "doubt"
    assert "Field" in str(doubt)
    assert lace.check("Path(X,Y) :- Edge(X,Y).", purpose="raw") == []
    assert lace.check("A(P) :- Own(P).", given=[lace.Predicate("Own", 1)]) == []
    with pytest.raises(lace.InvalidInput, match="auto, store, selector, exposure, raw"):
        lace.check("A(P) :- Have(P).", purpose="selecter")  # type: ignore[arg-type]


def test_a_plan_is_the_same_for_both_sides() -> None:
    ours = lace.plan("//u//", "//u//ding//", expose="selected")
    theirs = lace.plan("//u//ding//", "//u//", dialled=False)
    assert (ours.id, ours.transcript) == (theirs.id, theirs.transcript)
    assert ours.fields is not None
    assert {"App", "Group"} <= ours.fields
    assert theirs.notices
    assert not OPTION.search(" ".join(str(notice) for notice in theirs.notices))


def test_status_asks_remotes_and_says_what_is_missing(pair: tuple[lace.Lace, lace.Lace], tmp_path: Path) -> None:
    ours = put(pair[0], "1")
    with lace.serve(pair[1], f"unix:{tmp_path}/s.sock", expose="all") as (address,):
        add_remote(pair[0].store, Remote("hub", address))
        add_remote(pair[0].store, Remote("copy", str(tmp_path / "b.lace")))
        add_remote(pair[0].store, Remote("gone", f"unix:{tmp_path}/nobody.sock"))
        found = lace.status(pair[0], expose="all")
        by_name = {one.remote.name: one for one in found.remotes}
        assert [missing.hash for missing in by_name["hub"].missing_there] == [ours]
        assert [missing.hash for missing in by_name["copy"].missing_there] == [ours]
        assert "nobody.sock" in by_name["gone"].trouble
        assert not found.is_equal
        lace.connect(pair[0], address, expose="all").raise_for_status()
        assert lace.status(pair[0], "hub", "copy", expose="all").is_equal
        assert not lace.status(pair[0], "hub", ask=False).remotes[0].was_asked


def test_notices_of_an_exchange_speak_of_arguments(pair: tuple[lace.Lace, lace.Lace]) -> None:
    put(pair[0], "1")
    said = " ".join(str(notice) for notice in lace.exchange(*pair).notices[0])
    assert 'expose="selected"' in said
    assert not OPTION.search(said)


def test_every_remedy_of_the_walk_has_words_in_python() -> None:
    """Read from the source, so that a remedy that somebody adds is found."""
    texts = []
    for file in ("porcelain/why.py", "policy/notice.py"):
        source = (SOURCES / file).read_text("utf-8")
        body = source.split('"""', 2)[2]
        joined = re.sub(r'"\s*\n\s*f?"', "", body)
        texts += [text for text in re.findall(r'"([^"\n]{12,})"', joined) if OPTION.search(text)]
    assert len(texts) > 5
    assert [text for text in texts if OPTION.search(in_python(text))] == []
