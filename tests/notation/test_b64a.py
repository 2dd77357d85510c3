"""006: one text per byte string, in the same order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidText
from lace.notation import b64a

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "b64a.json").read_text(encoding="utf-8"))


@pytest.mark.clause("006-ALPHA-01", "006-ALPHA-02")
def test_the_alphabet_is_ascending_and_path_safe() -> None:
    assert b64a.ALPHABET == "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~"
    assert sorted(b64a.ALPHABET) == list(b64a.ALPHABET)
    assert len(set(b64a.ALPHABET)) == 64
    assert not set(b64a.ALPHABET) & set("/.+-=")
    assert [b64a.encode(bytes([index << 2]))[0] for index in range(64)] == list(b64a.ALPHABET)


@pytest.mark.clause("006-ENC-07", "006-ENC-01", "006-ENC-02", "006-ENC-03")
@pytest.mark.parametrize(("plain", "text"), VECTORS["pairs"])
def test_vectors(plain: str, text: str) -> None:
    assert b64a.encode(bytes.fromhex(plain)) == text
    assert b64a.decode(text) == bytes.fromhex(plain)


@pytest.mark.clause("006-DEC-02", "006-DEC-04", "006-DEC-05", "006-DEC-06")
@pytest.mark.parametrize(("text", "rule"), VECTORS["reject"])
def test_rejected_vectors(text: str, rule: str) -> None:
    assert not b64a.is_canonical(text)
    with pytest.raises(InvalidText) as caught:
        b64a.decode(text)
    assert caught.value.rule == rule


@pytest.mark.clause("006-ENC-01", "006-ENC-02", "006-ENC-03", "006-ENC-04", "006-ENC-05")
@given(st.binary(max_size=80))
def test_bits_are_taken_from_the_top_in_sixes(plain: bytes) -> None:
    bits = "".join(f"{byte:08b}" for byte in plain)
    bits += "0" * (-len(bits) % 6)
    text = "".join(b64a.ALPHABET[int(bits[at : at + 6], 2)] for at in range(0, len(bits), 6))
    assert b64a.encode(plain) == text
    assert len(text) == -(-8 * len(plain) // 6)
    assert b64a.decode(text) == plain
    assert b64a.is_canonical(text)
    assert b64a.is_canonical(text, len(plain))
    assert not b64a.is_canonical(text, len(plain) + 1)


@pytest.mark.clause("006-ENC-04")
def test_lengths() -> None:
    assert [len(b64a.encode(bytes(size))) for size in (0, 1, 2, 3, 32, 64)] == [0, 2, 3, 4, 43, 86]


@pytest.mark.clause("006-ENC-06")
@pytest.mark.parametrize(("size", "last"), [(32, "048CGKOSW_dhlptx"), (64, "0GWl")])
def test_the_last_symbol_of_digests_and_signatures(size: int, last: str) -> None:
    assert {b64a.encode(bytes(size - 1) + bytes([byte]))[-1] for byte in range(256)} == set(last)
    length = len(b64a.encode(bytes(size)))
    accepted = {symbol for symbol in b64a.ALPHABET if b64a.is_canonical("0" * (length - 1) + symbol, size)}
    assert accepted == set(last)


@pytest.mark.clause("006-ENC-05", "006-DEC-01", "006-DEC-03", "006-DEC-04", "006-DEC-05")
@given(st.text(st.one_of(st.sampled_from(b64a.ALPHABET), st.sampled_from("+/-. \n\x00é=")), max_size=12))
def test_an_accepted_text_encodes_to_itself_and_the_two_tests_agree(text: str) -> None:
    try:
        plain = b64a.decode(text)
    except InvalidText:
        assert not b64a.is_canonical(text)
    else:
        assert b64a.encode(plain) == text
        assert b64a.is_canonical(text)


@pytest.mark.clause("006-DEC-01")
@pytest.mark.parametrize("outside", ["+", "/", "-", ".", " ", "\n", "\x00", "é", "٠", "\U0001f5a7"])
@pytest.mark.parametrize("position", range(4))
def test_a_symbol_outside_the_alphabet_is_refused_anywhere(outside: str, position: int) -> None:
    with pytest.raises(InvalidText) as caught:
        b64a.decode("0000"[:position] + outside + "0000"[position + 1 :])
    assert caught.value.rule == "b64a-alphabet"


@pytest.mark.clause("006-DEC-03")
@pytest.mark.parametrize("length", [1, 5, 9, 41, 45])
def test_no_text_has_a_length_of_1_mod_4(length: int) -> None:
    with pytest.raises(InvalidText) as caught:
        b64a.decode("0" * length)
    assert caught.value.rule == "b64a-length"


@pytest.mark.clause("006-ORD-01", "006-ORD-02")
@given(st.binary(max_size=8), st.binary(max_size=8))
def test_text_order_is_byte_order(one: bytes, other: bytes) -> None:
    left, right = b64a.encode(one), b64a.encode(other)
    if len(left) == len(right):
        assert (left < right) == (one < other)
    longer = b64a.encode(one + other)
    if longer.startswith(left) and longer != left:
        assert left < longer


@given(st.integers(0, 70), st.integers(0, 9), st.data())
def test_texts_decoded_together_are_those_decoded_alone(size: int, count: int, data: st.DataObject) -> None:
    pieces = [data.draw(st.binary(min_size=size, max_size=size)) for _ in range(count)]
    if size:
        assert b64a.decode_canonical_each(list(map(b64a.encode, pieces)), size) == pieces
