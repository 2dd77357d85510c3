"""Which key a word means, and who chose the word."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lace as api
from lace.errors import InvalidText, KeyUnavailable, StoreError
from lace.people.names import NameBook, Whose, add_petname, petnames, remove_petname, with_verifiers
from lace.people.root import Root, pin_root
from lace.records.keys import SigningKey

ME, ANNA, BOB, EVE = (SigningKey(bytes(31) + bytes([number])) for number in (3, 5, 7, 9))
RING = {ME.verifier: "me"}


def test_a_petname_means_its_key_and_is_given_away_only_on_request() -> None:
    with api.open(":memory:") as lace:
        add_petname(lace.store, "bob", BOB.verifier)
        add_petname(lace.store, "bob", BOB.verifier)  # twice is once
        with pytest.raises(StoreError):
            add_petname(lace.store, "bob", EVE.verifier)
        assert NameBook.of(lace.store, RING).verifier("bob") == BOB.verifier
        add_petname(lace.store, "bob", EVE.verifier, replace=True)
        assert petnames(lace.store) == {"bob": EVE.verifier}
        assert remove_petname(lace.store, "bob") == EVE.verifier
        with pytest.raises(KeyUnavailable):
            remove_petname(lace.store, "bob")


def test_a_word_for_two_of_my_keys_is_an_error_and_an_unknown_one_says_what_is_near() -> None:
    with api.open(":memory:") as lace:
        add_petname(lace.store, "me", BOB.verifier)
        add_petname(lace.store, "björn", BOB.verifier)
        book = NameBook.of(lace.store, RING)
        with pytest.raises(KeyUnavailable, match="may be 2 keys"):
            book.verifier("me")
        with pytest.raises(KeyUnavailable) as caught:
            book.verifier("bjorn")
        assert "did you mean björn?" in caught.value.__notes__


@pytest.mark.parametrize(
    "name", ["", "a b", "a/b", "@bob", "-x", "V.x.H3/", "bob.", "group", "founder", "x" * 65, "a\n"]
)
def test_names_that_could_not_be_typed_in_rules_are_refused(name: str) -> None:
    with api.open(":memory:") as lace, pytest.raises(InvalidText):
        add_petname(lace.store, name, BOB.verifier)


def club() -> api.Lace:
    """Founded by Anna; Bob is a member and calls himself bob; Eve signed herself a name."""
    lace = api.open(":memory:")
    pin_root(lace.store, Root("club", ANNA.verifier))
    member = [("Called", "bob"), ("Role", "member")]
    lace.put(b"", group="club", app="member", name=BOB.verifier, headers=member, sign=ANNA)
    lace.put(b"", group="club", app="member", name=EVE.verifier, headers=[("Called", "anna")], sign=EVE)
    return lace


def test_a_name_in_a_group_without_a_root_or_of_a_stranger_is_nobodys() -> None:
    with api.open(":memory:") as lace:
        lace.put(b"", group="club", app="member", name=EVE.verifier, headers=[("Called", "anna")], sign=EVE)
        assert NameBook.of(lace.store, {}).names == ()
    with club() as lace:
        lace.put(b"", group="club", app="name", name=EVE.verifier, headers=[("Called", "anna")], sign=EVE)
        assert all(one.verifier != EVE.verifier for one in NameBook.of(lace.store, {}).names)


def test_rules_are_written_with_verifiers_outside_quotes_and_comments_only() -> None:
    text = "A(P) :- F(P,@bob), G('@bob','it\\'s @bob'). # @bob\n# @nobody\nB(P) :- F(P,@group)."
    assert with_verifiers(text, {"bob": "V.b"}) == (
        "A(P) :- F(P,'V.b'), G('@bob','it\\'s @bob'). # @bob\n# @nobody\nB(P) :- F(P,@group)."
    )
    with pytest.raises(InvalidText) as caught:
        with_verifiers("ok.\nA(P) :- F(P,@nobody).", {}, name="r.lace")
    assert caught.value.place == "r.lace:2:13"


@given(st.text("ab'\\@#.,() \n/", max_size=60))
def test_text_without_names_outside_quotes_is_never_changed(text: str) -> None:
    book = dict.fromkeys(("a", "b", "ab", "ba"), "V.x")
    try:
        changed = with_verifiers(text, book)
    except InvalidText:
        return
    assert changed.replace("'V.x'", "") == text or "@" in text
    assert len(changed.split("\n")) == len(text.split("\n"))


def test_names_are_in_the_settings_and_in_no_record(tmp_path: Path) -> None:
    with api.open(tmp_path / "a.lace", create=True) as lace:
        add_petname(lace.store, "bob", BOB.verifier)
        assert lace.stat().records == 0
    with api.open(tmp_path / "a.lace") as again:
        assert NameBook.of(again.store, {}).verifier("bob") == BOB.verifier


def test_the_preferred_name_of_a_key_is_mine() -> None:
    with club() as lace:
        add_petname(lace.store, "bobby", BOB.verifier)
        book = NameBook.of(lace.store, {ANNA.verifier: "founder-key"})
        assert book.of_key(BOB.verifier)[0].name == "bobby"
        assert book.of_key(ANNA.verifier)[0].whose is Whose.KEY


def test_what_a_member_is_called_is_known_apart_from_my_names_and_two_of_a_name_are_an_error() -> None:
    with club() as lace:
        book = NameBook.of(lace.store, RING)
        (own,) = book.of_key(BOB.verifier)
        assert (own.name, own.whose) == ("bob", Whose.OWN)
        assert book.verifier("bob") == BOB.verifier
        add_petname(lace.store, "bob", ME.verifier)
        assert NameBook.of(lace.store, RING).verifier("bob") == ME.verifier  # mine goes before theirs
        remove_petname(lace.store, "bob")
        other = [("Called", "bob"), ("Role", "member")]
        lace.put(b"", group="club", app="member", name=EVE.verifier, headers=other, sign=ANNA)
        with pytest.raises(KeyUnavailable, match="may be 2 keys"):
            NameBook.of(lace.store, RING).verifier("bob")


def test_a_friends_name_is_typed_with_the_friend_and_goes_when_the_friend_changes_it() -> None:
    with club() as lace:
        for name in ("rob", "robby"):
            lace.put(b"", group="club", app="name", name=ME.verifier, headers=[("Called", name)], sign=BOB)
        book = NameBook.of(lace.store, {})
        assert book.verifier("bob/robby") == ME.verifier
        for word in ("robby", "bob/rob", "anna/robby"):
            with pytest.raises(KeyUnavailable):
                book.verifier(word)
