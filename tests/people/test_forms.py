"""People records as bytes, vectors for other implementations, and what travels (080)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lace.errors import InvalidText
from lace.people import forms
from lace.people.standing import PEOPLE_APPS
from lace.records.model import Plex, Seal
from lace.records.validate import validate
from lace.records.write import encode_record
from people.world import (
    GROUP,
    Seen,
    admin,
    at,
    device,
    dismissed,
    hashes,
    invite,
    key,
    left,
    member,
    note,
    sealed,
    succession,
    v,
    withdrawn,
)

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "tests" / "vectors" / "people.json"


def every_form() -> dict[str, Seal]:
    """One record of each form, by its name in the vectors."""
    commits, named = succession("bob", "bob2", 1)
    mine = note("bob", 2)
    return {
        "admin in": admin("bob", "anna", 1),
        "admin out": dismissed("bob", "anna", 5, member("carl", "bob", 2)),
        "member": member("bob", "anna", 1, called="Bob"),
        "member by invitation": member("carl", "once", 11, called="Carl", invited=v("once")),
        "reader": member("dora", "anna", 1, role="reader"),
        "device": device("phone", "bob", "bob", 2),
        "invite": invite("once", "anna", 10, until=20),
        "invite withdrawn": withdrawn("once", "anna", 12, member("carl", "once", 11)),
        "left": left("bob", "anna", 5, mine),
        "commitment": commits,
        "successor": named,
    }


@pytest.mark.clause("080-FORM-01", "080-FORM-02")
def test_the_forms_are_ordinary_seals_with_the_bytes_of_the_vectors() -> None:
    vectors = json.loads(VECTORS.read_text(encoding="utf-8"))
    assert set(vectors["records"]) == set(every_form())
    for name, record in every_form().items():
        stored = encode_record(record)
        assert stored.decode() == vectors["records"][name], name
        assert bytes(validate(stored).data) == b""


@pytest.mark.parametrize(
    "case", json.loads(VECTORS.read_text(encoding="utf-8"))["cases"], ids=lambda case: case["name"]
)
def test_the_records_of_the_vectors_derive_what_the_vectors_say(case: dict[str, list[str]]) -> None:
    vectors = json.loads(VECTORS.read_text(encoding="utf-8"))
    stored = [validate(vectors["records"][name].encode()) for name in case["records"]]
    from lace.datalog.engine import evaluate
    from lace.datalog.language.annotations import read_annotated
    from lace.datalog.language.syntax import Predicate
    from lace.datalog.language.validate import LOCAL_PROFILE, check_program
    from lace.datalog.source import MemorySource
    from lace.facts.derive import derive_facts
    from lace.people.root import Root
    from lace.people.wording import core_rules

    program = check_program(read_annotated(core_rules(Root(GROUP, v("anna")))).program, LOCAL_PROFILE)
    result = evaluate(program, [MemorySource([fact for record in stored for fact in derive_facts(record)])])
    for predicate in ("Admin", "Member"):
        assert sorted(row[0] for row in result.rows(Predicate(predicate, 1))) == case[predicate]


@pytest.mark.clause("080-FORM-03")
def test_what_stands_is_continued_under_numbered_names_and_counts_together() -> None:
    notes = [note("bob", 2, f"n{number}") for number in range(1000)]
    parts = forms.left(GROUP, v("bob"), at(5), hashes(notes))
    assert [part.name for part in parts] == [v("bob"), f"{v('bob')}/2", f"{v('bob')}/3"]
    assert {part.tai for part in parts} == {at(5)}
    seen = Seen([member("bob", "anna", 1), *(sealed(part, "anna") for part in parts)])
    assert all(map(seen.counts, notes))
    newer = Seen(
        [member("bob", "anna", 1), *(sealed(part, "anna") for part in parts), left("bob", "anna", 6, notes[0])]
    )
    assert [one for one in notes if newer.counts(one)] == notes[:1]


@pytest.mark.clause("080-FORM-04")
def test_what_people_are_called_decides_nothing() -> None:
    plain, named = member("bob", "anna", 1), member("bob", "anna", 1, called="anna", invited=v("carl"))
    assert Seen([plain]).rows("Author", 2) == Seen([named]).rows("Author", 2)
    with pytest.raises(InvalidText):
        forms.member(GROUP, v("bob"), at(1), called="two\nlines")


@pytest.mark.clause("080-SEC-01")
def test_a_stolen_line_admits_no_more_than_its_uses_and_a_withdrawal_says_who_came_in() -> None:
    opened, bob, thief = invite("once", "anna", 10), member("bob", "once", 12), member("eve", "once", 11)
    assert Seen([opened, bob, thief]).names("Member", ("bob", "eve")) == {"eve"}  # backdated: it takes the one place
    fixed = withdrawn("once", "anna", 13, bob)
    assert Seen([opened, bob, thief, fixed]).names("Member", ("bob", "eve")) == {"bob"}


@pytest.mark.clause("080-TRAVEL-01", "080-TRAVEL-02")
def test_what_counts_travels_and_what_a_key_signed_after_it_left_does_not() -> None:
    records = every_form()
    del records["invite withdrawn"]
    records["left"] = left("bob", "bob2", 5, records["device"])
    seen = Seen(records.values(), travels=True)
    sent = {row[0] for row in seen.rows("SelectHave", 1)}
    assert sent == {record.hash for record in records.values()}
    gone = left("carl", "anna", 30)
    junk = [
        device("phone2", "carl", "carl", 31),
        left("carl", "carl", 32),
        member("eve", "carl", 31),
        admin("eve", "carl", 31),
        sealed(Plex(group=GROUP, app="policy", name="select", tai=at(40)), "carl"),
    ]
    seen = Seen([*records.values(), gone, *junk], travels=True)
    sent = {row[0] for row in seen.rows("SelectHave", 1)}
    assert gone.hash in sent
    assert not sent & {one.hash for one in junk}


def test_the_document_has_the_rules_as_they_are_shipped() -> None:
    text = (ROOT / "docs" / "spec" / "080-people.md").read_text(encoding="utf-8")
    for file in ("core.lace", "travel.lace"):
        (shown,) = re.findall(rf"<!-- rules: {file} -->\n```text\n(.*?)```\n<!-- end of rules -->", text, re.DOTALL)
        assert shown == (ROOT / "src" / "lace" / "people" / "rules" / file).read_text(encoding="utf-8")
    assert all(f"//G//{app}//" in text for app in PEOPLE_APPS)
    assert str(key("anna").verifier).startswith("V.")
