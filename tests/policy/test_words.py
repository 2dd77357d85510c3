"""A bare word that names no policy is refused as a word, with what is near it, and is not read as rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import lace
from lace.cli.app import app
from lace.policy.exposure import EXPOSURE_WORDS, expose
from lace.policy.select import select_text

WORDS = st.from_regex(r"[a-zA-Z_./-]{1,20}", fullmatch=True)


@given(WORDS)
def test_a_bare_word_is_a_policy_or_refused_as_a_word(word: str) -> None:
    if word not in EXPOSURE_WORDS:
        with pytest.raises(lace.InvalidExchangePlan) as refused:
            expose(word, selector=None)
        assert refused.value.rule == "expose-word"
    if word != "all" and not word.startswith("/"):
        with pytest.raises(lace.InvalidExchangePlan) as refused:
            select_text(word)
        assert refused.value.rule == "select-word"


def test_what_is_near_is_named_wherever_a_policy_is_given() -> None:
    with lace.open(":memory:") as one, lace.open(":memory:") as other:
        for wrong in ("selectd", " selectd ", "Selected"):
            with pytest.raises(lace.InvalidExchangePlan, match="did you mean selected"):
                lace.exchange(one, other, expose=wrong)
        with pytest.raises(lace.InvalidExchangePlan, match="did you mean selected"):
            lace.Node(one, expose=["all", "selectd"])
        with pytest.raises(lace.InvalidExchangePlan, match="did you mean all"):
            lace.exchange(one, other, select=["//u//", "al"])


def test_rules_and_words_are_still_what_they_were() -> None:
    assert expose(" all ", selector=None) == expose("all", selector=None)
    assert expose("AllowQueryRecord(V,P):-Have(P).", selector=None)
    assert select_text("SelectHave(P):-Have(P).\nSelectAdvertised(P,S):-Advertised(P,S).")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--expose", "selectd"], "did you mean selected?"),
        (["--expose", "exposd.lace"], "did you mean exposed.lace?"),
        (["--expose", "zzz"], "give all, selected, none, a rule file"),
        (["--select", "exposd.lace"], "did you mean exposed.lace?"),
        (["--their-select", "al"], "did you mean all?"),
    ],
)
def test_the_command_names_what_is_near(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("exposed.lace").write_text("AllowQueryRecord(V,P) :- Have(P).\n")
    for name in ("a", "b"):
        lace.open(f"{name}.db", create=True).close()
    result = CliRunner().invoke(app, ["interlace", "a.db", "b.db", *words])
    assert result.exit_code == 3, result.output
    assert said in result.output
