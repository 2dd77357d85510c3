"""009: keys, signing, verifying, and secrets that stay secret."""

from __future__ import annotations

import copy
import pickle
import traceback
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidRecord, InvalidSignature, InvalidText, KeyUnavailable, LaceError
from lace.notation import b64a, compiled
from lace.notation.digest import digest, key_deriver
from lace.notation.identifiers import Verifier
from lace.notation.tai import TAI
from lace.records import curve, exact, keys, libsecp
from lace.records.exact import N, P
from lace.records.keys import (
    SigningKey,
    SigningSecret,
    challenge_scalar,
    first_scalar,
    nonce_scalar,
    verify,
    verify_batch,
)
from lace.records.model import Blob, Plex, Seal

SCALARS = st.one_of(st.integers(1, N - 1), st.sampled_from([1, 2, N - 1, N - 2, N // 2]))
BYTES32 = st.binary(min_size=32, max_size=32)
AUX = BYTES32.filter(any)


def even(scalar: bytes) -> bytes:
    """Of a scalar and its negative the one whose point has even y."""
    d = int.from_bytes(scalar, "big")
    point = exact.multiply(d, exact.G)
    assert point is not None
    return be32(N - d if point[1] % 2 else d)


KEY = SigningKey(bytes(31) + b"\x05")
MESSAGE = digest(b"message")


def be32(number: int) -> bytes:
    return number.to_bytes(32, "big")


def derive(name: str, data: bytes) -> int:
    return int.from_bytes(key_deriver(f"lace-\U0001f5a7/{name}")(data, 32), "big")


def textbook_signature(d0: int, msg32: bytes, aux: bytes) -> tuple[bytes, bytes]:
    """The signing of 009 in plain integers; gives Px and the signature."""
    point = exact.multiply(d0, exact.G)
    assert point is not None
    d = d0 if point[1] % 2 == 0 else N - d0
    px = be32(point[0])
    mask = be32(derive("aux", aux) ^ d)
    k0 = derive("nonce", mask + px + msg32) % N
    r = exact.multiply(k0, exact.G)
    assert r is not None
    k = k0 if r[1] % 2 == 0 else N - k0
    e = derive("challenge", be32(r[0]) + px + msg32) % N
    return px, be32(r[0]) + be32((k + e * d) % N)


@pytest.mark.clause(
    "009-KDF-01", "009-KDF-02", "009-KEY-03", "009-KEY-04", "009-SIGN-01", "009-SIGN-02", "009-SIGN-03", "009-SIGN-05",
    "009-SIGN-06", "009-SIGN-07", "009-SIGN-11",
)  # fmt: skip
@given(SCALARS, BYTES32, AUX)
def test_signing_follows_the_text_book(d0: int, msg32: bytes, aux: bytes) -> None:
    key = SigningKey(be32(d0))
    px, signature = textbook_signature(d0, msg32, aux)
    assert key.verifier.digest == px
    assert key.sign(msg32, aux) == key.sign(msg32, aux) == signature
    verify(px, msg32, signature)


@pytest.mark.clause("009-KDF-03")
def test_the_contexts_are_exact() -> None:
    prefix = bytes.fromhex("6C6163652DF09F96A72F").decode()
    material = bytes(range(32))
    assert keys.derive_scalar(material, 32) == key_deriver(prefix + "adhoc-key")(material, 32)
    assert keys.derive_aux(material, 32) == key_deriver(prefix + "aux")(material, 32)
    assert keys.derive_nonce(material, 32) == key_deriver(prefix + "nonce")(material, 32)
    assert keys.derive_challenge(material, 32) == key_deriver(prefix + "challenge")(material, 32)


@pytest.mark.clause("009-KEY-05", "009-KEY-03", "009-SEC-03")
@given(SCALARS)
def test_every_key_has_even_y(d0: int) -> None:
    key = SigningKey(be32(d0))
    other = SigningKey(be32(N - d0))  # of the same x, and the other y
    point = exact.multiply(d0, exact.G)
    assert point is not None
    assert Verifier.of(be32(point[0])) == key.verifier == other.verifier
    assert key.sign(MESSAGE, b"\x02" * 32) == other.sign(MESSAGE, b"\x02" * 32)
    verify(be32(point[0]), MESSAGE, key.sign(MESSAGE))


@pytest.mark.clause("009-KEY-01", "009-KEY-02")
def test_a_drawn_scalar_outside_the_range_is_not_used() -> None:
    draws = iter([bytes(32), be32(N), be32(2**256 - 1), be32(7)])
    assert SigningKey.generate(lambda size: next(draws)).verifier == SigningKey(be32(7)).verifier
    assert SigningKey.generate().verifier != SigningKey.generate().verifier
    for bad in (bytes(32), be32(N), b"\x01" * 31):
        with pytest.raises(KeyUnavailable):
            SigningKey(bad)


@pytest.mark.clause("009-SEC-01", "009-SEC-02", "009-SEC-03")
@pytest.mark.parametrize("bad", [bytes(32), be32(N), be32(N + 1), b"\xff" * 32])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_next_xof_block_is_taken_when_one_is_no_scalar(
    bad: bytes, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = bad * count + be32(9) + be32(8) + be32(7)
    monkeypatch.setattr(keys, "derive_scalar", lambda material, length: stream[:length])
    assert first_scalar(bytes(32)) == be32(9)


@pytest.mark.clause("009-SEC-01", "009-SEC-03")
@given(BYTES32)
def test_a_secret_always_gives_the_same_key(material: bytes) -> None:
    secret = SigningSecret(material)
    expected = SigningKey(key_deriver("lace-\U0001f5a7/adhoc-key")(material, 32)).verifier
    assert SigningKey.from_secret(secret).verifier == SigningKey.from_secret(secret.reveal()).verifier == expected


@pytest.mark.clause("009-TEXT-06", "009-TEXT-02")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "&.",
        "&..H3",
        "&.0000.H3",
        "V." + "0" * 43 + ".H3",
        "&." + "0" * 43,
        "&." + "0" * 44 + ".H3",
        "&." + "0" * 42 + "1.H3",
        "&." + "0" * 42 + "=.H3",
    ],
)
def test_a_malformed_secret_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(InvalidText) as caught:
        SigningSecret.parse(text)
    assert not text[2:-3] or text[2:-3] not in "".join(traceback.format_exception(caught.value))
    assert caught.value.found == "" or "bytes" in caught.value.found


@pytest.mark.clause("009-TEXT-03")
def test_a_secret_is_never_shown_or_copied() -> None:
    secret = SigningSecret(bytes(range(32)))
    key = SigningKey.from_secret(secret)
    scalar = even(first_scalar(bytes(range(32))))
    hidden = [
        secret.reveal()[2:-3],
        bytes(range(32)).hex(),
        scalar.hex(),
        repr(scalar),
        repr(bytes(range(32))),
    ]
    seal = key.seal(Plex(group="u", app="a", name="n", tai=TAI("1640995200:000000000"), blob=Blob(b"x")))
    texts = [repr(secret), str(secret), f"{secret}", repr(key), str(key), f"{key}", f"{key!r:>9}", repr(seal)]
    texts.append(b"".join(seal.stored_chunks()).decode())
    for value in (secret, key):
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError) as refused:
                attempt(value)
            texts.append("".join(traceback.format_exception(refused.value)))
    for call in (lambda: key.sign(b"short"), lambda: key.sign(MESSAGE, bytes(32)), lambda: SigningSecret(bytes(31))):
        with pytest.raises((ValueError, LaceError)) as failed:
            call()
        texts.append("".join(traceback.format_exception(failed.value)))
    assert not [text for text in texts if any(piece in text for piece in hidden)]


@pytest.mark.clause("009-TEXT-01", "009-TEXT-04")
def test_verifiers_and_signatures_are_spelled_as_printed_here() -> None:
    """The texts were made by hand from the curve's 5·G and the table of 006, not by the code under test."""
    assert KEY.verifier == "V.BtkUJHd789DLiASa2amHAEYBXBsSOPfsnvZLQR90wzG.H3"
    spelled = "00420lG51WS82GdB30pE3m0H4XCK5HON61_Q6mlT7XxW8I8Z92Kb9nWeAYhhBItkC34nCoGqDZStEJdwF3pzFl"
    assert b64a.encode(bytes(range(64))) == spelled
    plex = Plex(group="u", app="a", name="n", tai=TAI("1640995200:000000000"), headers=(), blob=Blob(b"x"))
    seal = Seal(signed_by=KEY.verifier, signature=spelled, plex=plex)
    head = f"Signed-By: V.BtkUJHd789DLiASa2amHAEYBXBsSOPfsnvZLQR90wzG.H3\nSignature: {spelled}\n"
    assert b"".join(seal.payload_chunks()).startswith(head.encode())
    for wrong in (spelled[:-1], spelled + "0", spelled + "=", spelled[:-1] + "m", f"{spelled[:-1]}+"):
        with pytest.raises(InvalidRecord):
            Seal(signed_by=KEY.verifier, signature=wrong, plex=plex)


@pytest.mark.clause("009-SIGN-08", "009-TEXT-04")
def test_two_signatures_of_one_message_differ_and_both_verify() -> None:
    first, second = KEY.sign(MESSAGE), KEY.sign(MESSAGE)
    assert first != second
    assert [len(b64a.encode(one)) for one in (first, second)] == [86, 86]
    assert verify_batch([(KEY.verifier.digest, MESSAGE, one) for one in (first, second)]) == [None, None]


@pytest.mark.clause("009-SIGN-09", "009-SIGN-10")
@pytest.mark.parametrize(("msg32", "aux"), [(MESSAGE, bytes(32)), (MESSAGE, b"\x01" * 31), (MESSAGE, b"\x01" * 33),
                                            (b"", b"\x01" * 32), (MESSAGE + b"x", b"\x01" * 32)])  # fmt: skip
def test_signing_refuses_odd_sizes_and_a_zero_aux(msg32: bytes, aux: bytes) -> None:
    with pytest.raises(ValueError, match="aux"):
        KEY.sign(msg32, aux)


@pytest.mark.clause("009-SIGN-04")
@pytest.mark.parametrize("nonce", [bytes(32), be32(N)])
def test_a_nonce_of_zero_is_refused(nonce: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "derive_nonce", lambda material, length: nonce)
    with pytest.raises(KeyUnavailable):
        nonce_scalar(bytes(32), bytes(32), bytes(32))
    with pytest.raises(KeyUnavailable):
        KEY.sign(MESSAGE)


SIGNATURE = KEY.sign(MESSAGE, b"\x02" * 32)
PX = KEY.verifier.digest
SCALAR = even(be32(5))


def refused(px: bytes, msg32: bytes, sig64: bytes, why: str) -> None:
    with pytest.raises(InvalidSignature, match=why):
        verify(px, msg32, sig64)


@pytest.mark.clause("009-VER-07", "009-VER-01")
@given(st.integers(0, 128 * 8 - 1))
def test_flipping_any_bit_fails(bit: int) -> None:
    whole = bytearray(PX + MESSAGE + SIGNATURE)
    whole[bit // 8] ^= 1 << bit % 8
    with pytest.raises(InvalidSignature):
        verify(bytes(whole[:32]), bytes(whole[32:64]), bytes(whole[64:]))
    verify(PX, MESSAGE, SIGNATURE)


@pytest.mark.clause("009-VER-02")
@pytest.mark.parametrize("r", [P, P + 1, 2**256 - 1])
def test_r_of_the_prime_or_more_is_refused(r: int) -> None:
    refused(PX, MESSAGE, be32(r) + SIGNATURE[32:], "r is not below")


@pytest.mark.clause("009-VER-03")
def test_s_of_the_order_or_more_is_refused() -> None:
    s = int.from_bytes(SIGNATURE[32:], "big")
    for bad in (N, 2**256 - 1, *([s + N] if s + N < 2**256 else [])):
        refused(PX, MESSAGE, SIGNATURE[:32] + be32(bad), "s is not below")


NOT_ON_CURVE = next(x for x in range(1, 100) if exact.lift_x(x) is None)


@pytest.mark.clause("009-VER-04")
@pytest.mark.parametrize("x", [0, NOT_ON_CURVE, P, P + 1, 2**256 - 1])
def test_a_verifier_that_is_no_x_coordinate_is_refused(x: int) -> None:
    refused(be32(x), MESSAGE, SIGNATURE, "not an x-coordinate")


@pytest.mark.clause("009-VER-05")
def test_infinity_is_refused() -> None:
    """With s = e·d the two multiples cancel; r can be anything, so it decides e and s follows."""
    d = int.from_bytes(SCALAR, "big")
    e = challenge_scalar(SIGNATURE[:32], PX, MESSAGE)
    refused(PX, MESSAGE, SIGNATURE[:32] + be32(e * d % N), "infinity")


@pytest.mark.clause("009-VER-06")
def test_a_point_of_odd_y_is_refused() -> None:
    """A signature made with the nonce whose point has odd y: x is right, y is not."""
    d = int.from_bytes(SCALAR, "big")
    k = next(k for k in range(1, 99) if exact.compress(exact.multiply(k, exact.G))[0] == 3)
    rx = exact.compress(exact.multiply(k, exact.G))[1:]
    e = challenge_scalar(rx, PX, MESSAGE)
    refused(PX, MESSAGE, rx + be32((k + e * d) % N), "odd y")
    verify(PX, MESSAGE, rx + be32((N - k + e * d) % N))


@pytest.mark.clause("009-VER-08")
def test_a_signature_of_bip340_itself_does_not_verify() -> None:
    coincurve = pytest.importorskip("coincurve")  # no wheel for every Python
    signature = coincurve.PrivateKey(SCALAR).sign_schnorr(MESSAGE)
    refused(PX, MESSAGE, signature, "not made by this key")


@pytest.mark.clause("009-VER-01")
@pytest.mark.parametrize(
    ("px", "msg32", "sig64"), [(PX[1:], MESSAGE, SIGNATURE), (PX, MESSAGE[1:], SIGNATURE), (PX, MESSAGE, SIGNATURE[1:])]
)
def test_wrong_sizes_are_refused(px: bytes, msg32: bytes, sig64: bytes) -> None:
    refused(px, msg32, sig64, "32 bytes")


@pytest.mark.clause("009-SEAL-01", "009-SEAL-02")
def test_a_seal_signs_the_digest_of_its_plex_and_nothing_else() -> None:
    plex = Plex(group="u", app="a", name="n", tai=TAI("1640995200:000000000"), blob=Blob(b"x"))
    seal = KEY.seal(plex)
    signature = b64a.decode(seal.signature)
    verify(PX, plex.hash.digest, signature)
    stored_plex, payload = (b"".join(chunks) for chunks in (plex.stored_chunks(), seal.payload_chunks()))
    for other in (digest(plex.hash.encode()), digest(stored_plex), digest(payload), digest(plex.hash.digest)):
        with pytest.raises(InvalidSignature):
            verify(PX, other, signature)


@pytest.mark.clause("009-TEXT-01", "009-TEXT-05")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "V.",
        KEY.verifier[2:],
        "v" + KEY.verifier[1:],
        KEY.verifier[:-3],
        KEY.verifier[:-1] + "4",
        KEY.verifier[:44] + "1.H3",
        KEY.verifier[:40] + ".H3",
        KEY.verifier + "\n",
    ],
)
def test_a_malformed_verifier_is_refused(text: str) -> None:
    assert Verifier.parse(KEY.verifier).digest == PX
    with pytest.raises(InvalidText):
        Verifier.parse(text)


FIELD_EDGE = [x for x in range(N, N + 40) if exact.lift_x(x) is not None][:3]  # x-coordinates that are no scalars
COMBINE_X = st.one_of(
    SCALARS.map(lambda d: exact.multiply(d, exact.G)).map(lambda point: point[0] if point else 0),
    st.sampled_from([0, 1, 2, NOT_ON_CURVE, N, P, *FIELD_EDGE]),
)


@given(
    COMBINE_X,
    st.one_of(st.integers(0, N - 1), st.sampled_from([0, 1, N - 1])),
    st.one_of(st.integers(0, N - 1), st.just(0)),
)
def test_the_library_and_the_exact_arithmetic_agree(x: int, s: int, e: int) -> None:
    assert curve.has_library() is not compiled.IS_PURE
    assert curve.combiner()(be32(x), s, e) == exact.combine(be32(x), s, e)


@given(SCALARS, SCALARS, SCALARS)
def test_scalars_are_worked_the_same_with_and_without_the_library(factor: int, scalar: int, addend: int) -> None:
    arguments = (be32(factor), be32(scalar), be32(addend))
    with pytest.MonkeyPatch.context() as patch:
        found = (curve.public_point(arguments[0]), curve.negate(arguments[0]), curve.multiply_add(*arguments))
        zero_sum = curve.multiply_add(arguments[0], arguments[1], be32(-factor * scalar % N))
        patch.setattr(curve, "_lib", None)
        assert found == (curve.public_point(arguments[0]), curve.negate(arguments[0]), curve.multiply_add(*arguments))
        assert zero_sum == curve.multiply_add(arguments[0], arguments[1], be32(-factor * scalar % N)) == bytes(32)


def test_without_the_library_keys_sign_and_verify_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve, "_lib", None)
    key = SigningKey(bytes(31) + b"\x05")
    assert key.sign(MESSAGE, b"\x02" * 32) == SIGNATURE
    assert curve.combiner() is exact.combine
    assert verify_batch([(PX, MESSAGE, SIGNATURE), (PX, SIGNATURE[:32], SIGNATURE)])[0] is None
    assert verify_batch([(PX, SIGNATURE[:32], SIGNATURE)])[0] is not None


def test_threads_verify_side_by_side() -> None:
    from concurrent.futures import ThreadPoolExecutor

    messages = [digest(bytes([number])) for number in range(40)]
    tasks = [(PX, message, KEY.sign(message)) for message in messages]
    bad = [(PX, message, tasks[0][2]) for message in messages[1:]]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(verify_batch, [tasks, bad] * 4))
    assert results[::2] == [[None] * 40] * 4
    assert all(reason is not None for result in results[1::2] for reason in result)


@pytest.mark.parametrize("find", [libsecp.compiled_binding, libsecp.declared_binding])
def test_every_binding_of_the_library_gives_the_same_bytes(
    find: Callable[[], libsecp.Binding], request: pytest.FixtureRequest
) -> None:
    """Two wheels carry the library for different Pythons; whichever is found must not be noticed."""
    found = find()
    if found == libsecp.NOTHING:
        pytest.skip(f"{find.__name__}: its wheel is not installed for this Python")
    curve.use_library(found)
    request.addfinalizer(lambda: curve.use_library(libsecp.binding()))
    key = SigningKey(bytes(31) + b"\x05")
    assert key.sign(MESSAGE, b"\x02" * 32) == SIGNATURE
    wrong = SIGNATURE[:-1] + bytes([SIGNATURE[-1] ^ 1])
    assert [reason is None for reason in verify_batch([(PX, MESSAGE, SIGNATURE)] * 40 + [(PX, MESSAGE, wrong)])] == [
        *[True] * 40,
        False,
    ]
    for x, s, e in ((int.from_bytes(PX, "big"), 5, 7), (NOT_ON_CURVE, 1, 1), (N, 1, 1), (1, N - 1, N - 1)):
        assert curve.combiner()(be32(x), s, e) == exact.combine(be32(x), s, e)
    assert curve.multiply_add(be32(3), be32(4), be32(N - 12)) == bytes(32)
    assert curve.negate(be32(1)) == be32(N - 1)
    interface, library = found
    three = interface.new("secp256k1_pubkey *")
    assert library.secp256k1_ec_pubkey_create(library.secp256k1_context_create(1), three, be32(3))
    for point, scalar, same in (
        (None, 0, True),
        (None, 3, False),
        (three, 0, False),
        (three, 3, True),
        (three, 4, False),
    ):
        assert curve.is_multiple_of_g(point, scalar) is same
