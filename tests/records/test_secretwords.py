"""A secret as words: they come back whatever their case and separators, and a slip is found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidText
from lace.records.keys import SigningSecret
from lace.records.secretwords import secret_of_words, words_of

MATERIAL = st.binary(min_size=32, max_size=32)


@given(MATERIAL, st.sampled_from([" ", "\n", "-", ", ", "  3 "]))
def test_words_come_back(material: bytes, between: str) -> None:
    words = words_of(SigningSecret(material))
    typed = words.upper().replace(" ", between)
    assert secret_of_words(typed).material() == material
    assert all(len(word) == 5 for word in words.split())


def test_words_are_what_was_agreed_for_good() -> None:
    words = words_of(SigningSecret(bytes(range(32))))
    assert words == (
        "babad bamag bibaj bimal boban bomar bubat bumaz dabid damig dibij dimil dobin domir dubit dumiz lazoh fupor"
    )


@given(MATERIAL, st.integers(0, 17), st.integers(0, 17), st.sampled_from("bdfghjklmnprstvz"))
def test_a_swapped_or_misspelled_word_is_found_and_not_repeated(
    material: bytes, first: int, second: int, letter: str
) -> None:
    words = words_of(SigningSecret(material)).split()
    swapped, misspelled = list(words), list(words)
    swapped[first], swapped[second] = swapped[second], swapped[first]
    misspelled[first] = letter + words[first][1:]
    for typed in (swapped, misspelled, words[:-1], [*words, "babab"], ["xxxxx", *words[1:]]):
        if typed == words:
            continue
        with pytest.raises(InvalidText) as caught:
            secret_of_words(" ".join(typed))
        assert not set(words) & set(str(caught.value).split())
