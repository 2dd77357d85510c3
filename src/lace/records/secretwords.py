"""A signing secret as words to write down: 18 of five letters, of which the last two are a checksum.

Rule: a word is a proquint (arXiv:0901.4016): sixteen bits as consonant, vowel, consonant, vowel, consonant, so that no
list of words is needed to read one. Nothing here repeats a word that it refuses.

    >>> words_of(SigningSecret(bytes(32))).split()[:2]
    ['babab', 'babab']
"""

from __future__ import annotations

from lace.errors import InvalidText
from lace.notation.digest import domain_digest
from lace.records.keys import SigningSecret

WORDS = 18
_SECRET_WORDS = 16
_CONSONANTS, _VOWELS = "bdfghjklmnprstvz", "aiou"
_DOMAIN = "LACE-SECRET-WORDS-1\n"


def words_of(secret: SigningSecret) -> str:
    """The words of a secret, separated by spaces."""
    data = secret.material()
    data += _checksum(data)
    return " ".join(_word(int.from_bytes(data[at : at + 2])) for at in range(0, len(data), 2))


def secret_of_words(text: str) -> SigningSecret:
    """The secret that words spell, in any case and with any separators; InvalidText says which word is not one."""
    words = "".join(character if character.isalpha() else " " for character in text.lower()).split()
    if len(words) != WORDS:
        raise _refusal(f"a key is {WORDS} words; these are {len(words)}")
    data = b""
    for number, word in enumerate(words, start=1):
        value = _value(word)
        if value is None:
            raise _refusal(f"word {number} is misspelled: each has five letters, such as lusab")
        data += value.to_bytes(2)
    material, checksum = data[: 2 * _SECRET_WORDS], data[2 * _SECRET_WORDS :]
    if checksum != _checksum(material):
        raise _refusal("one of the words is wrong or in the wrong place: their checksum does not fit")
    return SigningSecret(material)


def looks_like_words(text: str) -> bool:
    """Whether a text is meant as words rather than as a secret in B64A."""
    return "&" not in text


def _checksum(material: bytes) -> bytes:
    return domain_digest(_DOMAIN, material)[:4]


def _word(value: int) -> str:
    return (
        _CONSONANTS[value >> 12]
        + _VOWELS[value >> 10 & 3]
        + _CONSONANTS[value >> 6 & 15]
        + _VOWELS[value >> 4 & 3]
        + _CONSONANTS[value & 15]
    )


def _value(word: str) -> int | None:
    if len(word) != 5:
        return None
    value = 0
    for letter, letters in zip(word, (_CONSONANTS, _VOWELS) * 2 + (_CONSONANTS,), strict=True):
        at = letters.find(letter)
        if at < 0:
            return None
        value = value * len(letters) + at
    return value


def _refusal(message: str) -> InvalidText:
    return InvalidText(message, rule="key-words")
