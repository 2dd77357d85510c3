"""The fast ways take what is common, to the last byte of every limit; keys, frames and manifests at their bounds."""

from __future__ import annotations

import pytest

from lace.errors import InvalidRecord, InvalidSignature, InvalidStream, InvalidText, KeyUnavailable
from lace.limits import RecordLimits
from lace.notation.b64a import encode
from lace.notation.bytesource import ByteSource
from lace.notation.decimal import MAX_DIGITS
from lace.records import curve, frame, keys
from lace.records.exact import G, N, P, add, combine, compress, lift_x, multiply
from lace.records.frame import (
    FIELD_LINES,
    FrameScan,
    claimed_hash,
    delimit,
    delimit_run,
    frame_end,
    max_head_bytes,
    split_records,
)
from lace.records.grammar import MARK, RecordRule, refuse
from lace.records.headpattern import extra_headers, parse_common
from lace.records.keys import SigningKey, SigningSecret, challenge_scalar, first_scalar, verify, verify_batch
from lace.records.manifest import Piece, content_length, full_hash, is_manifest, manifest_pieces
from lace.records.model import DEFAULT_LIMITS, Blob, Plex, RecordHash, ValidRecord
from lace.records.parse import parse_length, parse_record
from lace.records.partcolumns import parse_alike
from lace.records.thin import thicken, thin_form
from lace.records.validate import reread, validate
from records.strategies import FIELDS, KEY, blob_bytes, plex_bytes, seal_bytes

SMALL = RecordLimits(max_header_line_bytes=200, max_data_bytes=9, max_extra_headers=2)


# --- one match for a whole head ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "is_common"),
    [
        (blob_bytes(b""), True),
        (blob_bytes(b"123456789"), True),
        (blob_bytes(b"1234567890"), False),  # more data than allowed
        (plex_bytes(), True),
        (seal_bytes(plex_bytes()), True),
        (plex_bytes(extras=b"A: 1\nB: 2\n"), True),
        (plex_bytes(extras=b"A: 1\nA: 1\n"), True),
        (plex_bytes(extras=b"A: 1\nB: 2\nC: 3\n"), False),  # more headers than allowed
        (plex_bytes(extras=b"B: 1\nA: 2\n"), False),
        (plex_bytes(extras=b"Type: 1\n"), False),
        (plex_bytes(extras=b"A: " + b"x" * 197 + b"\n"), True),  # a line as long as allowed, the head longer
        (plex_bytes(extras=b"A: " + b"x" * 198 + b"\n"), False),
        (plex_bytes(extras="A: é\n".encode()), True),
        (plex_bytes(extras="A: e\u0301\n".encode()), False),
        (plex_bytes(extras=b"A: \xff\n"), False),
        (plex_bytes()[:-1], False),
        (plex_bytes() + b"x", False),
        (b"", False),
        (MARK + b"B", False),
        (b"abc\n\nxB" + b"y" * 99, False),
        (MARK + b"B\n\n", False),
        (MARK + b"X.y\n\n", False),
    ],
)
def test_what_is_common_is_read_by_one_match(stored: bytes, is_common: bool) -> None:
    found = parse_common(stored, SMALL)
    assert (found is not None) is is_common
    if is_common:
        assert found == parse_record(stored, SMALL)
    columns = parse_alike([stored] * 2, SMALL)
    assert columns is None or found is not None


def test_heads_within_the_longest_line_are_read_together() -> None:
    for frames in ([plex_bytes()] * 3, [seal_bytes(plex_bytes())] * 3, [plex_bytes(extras=b"A: 1\n"), plex_bytes()]):
        columns = parse_alike(frames, DEFAULT_LIMITS)
        assert columns is not None
        assert list(zip(*columns, strict=True)) == [parse_record(one, DEFAULT_LIMITS) for one in frames]
        start = parse_record(frames[0], DEFAULT_LIMITS).data_start
        exact, less = (RecordLimits(max_header_line_bytes=start - short) for short in (0, 1))
        assert parse_alike(frames[:1], exact) is not None
        assert parse_alike(frames[:1], less) is None
        assert parse_alike(frames[:1], RecordLimits(max_data_bytes=2)) is not None
        assert parse_alike(frames[:1], RecordLimits(max_data_bytes=1)) is None


@pytest.mark.parametrize(
    ("text", "most", "found"),
    [
        ("", 0, ()),
        ("A: 1\n", 1, (("A", "1"),)),
        ("A: 1\n", 0, None),
        ("A: 1: 2\nA: 0\nB: \n", 3, (("A", "1: 2"), ("A", "0"), ("B", ""))),
        ("B: 1\nA: 1\n", 3, None),
        ("TAI: 1\n", 3, None),
    ],
)
def test_extra_headers_are_sorted_unreserved_and_few(
    text: str, most: int, found: tuple[tuple[str, str], ...] | None
) -> None:
    assert extra_headers(text, RecordLimits(max_extra_headers=most)) == found


# --- frames -----------------------------------------------------------------------------------------------------------

HEAD = MARK + b"B.x\n"


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (b"x\n", "a record begins with its mark (found b'x')"),
        (b"\n", "a record begins with its mark (found b'')"),
        (HEAD + b"\n", "a blank line stands after Data-Length only (found b'')"),
        (HEAD + b"Data-Length: 1\nx\n", "an empty line follows Data-Length (found b'x')"),
        (HEAD + b"Data-Length: 1\nData-Length: 1\n", "one Data-Length of at most 9 (found b'1')"),
        (HEAD + b"Data-Length: 10\n", "one Data-Length of at most 9 (found b'10')"),
        (HEAD + b"Data-Length: 01\n", "one Data-Length of at most 9 (found b'01')"),
        (HEAD + b"Data-Length: " + b"1" * 99 + b"\n", f"one Data-Length of at most 9 (found b'{'1' * 80}')"),
        (HEAD + HEAD, "record types nest in the order S, P, B (found b'\\xf0\\x9f\\x96\\xa7: B.x')"),
        (HEAD + b"Data-Length: 1\n" + HEAD, "record types nest in the order S, P, B (found "),
        (MARK + b"\n", "record types nest in the order S, P, B (found b'\\xf0\\x9f\\x96\\xa7: ')"),
        (MARK + b"X\n", "record types nest in the order S, P, B (found b'\\xf0\\x9f\\x96\\xa7: X')"),
        (HEAD + b"a\n" * (FIELD_LINES + 3), "a record has too many header lines (found b'a')"),
        (HEAD + b"x" * 201, "a line is too long (found b'" + "x" * 80 + "')"),
    ],
)
def test_what_cannot_be_delimited_is_told_why(stored: bytes, said: str) -> None:
    with pytest.raises(InvalidStream) as caught:
        delimit(stored, 0, SMALL)
    assert str(caught.value).startswith(f"the record cannot be delimited: {said}")
    with pytest.raises(InvalidStream):
        delimit(b"before" + stored, 6, SMALL)


@pytest.mark.parametrize(
    ("stored", "end"),
    [
        (HEAD + b"Data-Length: 9\n\n", 10 + 16 + 9),
        (HEAD + b"Data-Length: 0\n\nrest", 10 + 16),
        (HEAD + b"a\n" * (FIELD_LINES + 2) + b"Data-Length: 0\n\n", 10 + 16 + 2 * (FIELD_LINES + 2)),
        (HEAD + b"x" * 200 + b"\nData-Length: 0\n\n", 10 + 16 + 201),
        (HEAD + b"x" * 200, None),
        (HEAD[:-1], None),
        (HEAD + b"Data-Length: 0\n", None),
        (b"", None),
    ],
)
def test_where_a_record_ends_is_found_to_the_byte(stored: bytes, end: int | None) -> None:
    assert delimit(stored, 0, SMALL) == frame.delimit_by_line(stored, 0, SMALL) == end
    assert frame_end(stored, 0, SMALL) == end
    shifted = None if end is None else end + 6
    assert delimit(bytearray(b"before" + stored), 6, SMALL) == shifted
    assert frame_end(b"before" + stored, 6, SMALL) == shifted
    assert frame.delimit_by_line(b"before" + stored, 6, SMALL) == shifted


def test_many_short_lines_in_several_parts_are_counted() -> None:
    """A head of three parts may hold as many lines as one of a single part, and not more."""
    for parts in (b"B", b"PB", b"SB", b"SPB"):
        marks = [MARK + bytes([letter]) + b".x\n" for letter in parts]
        for lines, fits in ((FIELD_LINES + 2, True), (FIELD_LINES + 3, False)):
            stored = b"".join(marks[:-1]) + marks[-1] + b"a\n" * lines + b"Data-Length: 0\n\n"
            mixed = marks[0] + b"a\n" * lines + b"".join(marks[1:]) + b"Data-Length: 0\n\n"
            for one in (stored, mixed):
                assert frame_end(one, 0, SMALL) == (len(one) if fits else None)
    assert max_head_bytes(SMALL) == (2 + FIELD_LINES + 5) * 201


def test_a_run_ends_where_anything_is_unusual() -> None:
    limits = RecordLimits(max_data_bytes=9, max_extra_headers=20)  # a head of 52 bytes has surely not too many lines
    good = HEAD + b"Data-Length: 1\n\nz"
    large = HEAD + b"Data-Length: 10\n\n" + b"z" * 10
    size = len(good)
    assert delimit_run(good * 3, 0, 3 * size, limits) == [size, 2 * size]
    assert delimit_run(good + MARK, 0, size, limits) == [size]
    assert delimit_run(good + large + good, 0, 999, limits) == [size]
    assert delimit_run(good + b"x" + good, 0, 999, limits) == []
    for filler, is_taken in ((25, True), (26, False)):
        longer = HEAD + b"a" * filler + b"\nData-Length: 9\n\n" + b"z" * 9
        assert delimit_run(longer + good, 0, 999, limits) == ([len(longer)] if is_taken else [])
    digits = HEAD + b"Data-Length: " + b"1" * (MAX_DIGITS + 1) + b"\n\n"
    assert delimit_run(digits + good, 0, 999, RecordLimits(max_data_bytes=10**30)) == []


def test_a_buffer_that_ends_inside_a_record_is_told_where() -> None:
    good = HEAD + b"Data-Length: 1\n\nz"
    assert list(split_records(good * 2)) == [good, good]
    assert list(split_records(b"")) == []
    for cut in (1, len(good) - 12):
        with pytest.raises(InvalidStream, match=f"byte {len(good)}: the bytes end inside a record"):
            list(split_records(good + good[:-cut]))


def test_a_claim_is_looked_for_in_the_first_line_only() -> None:
    assert claimed_hash(b"before" + HEAD, 6) == "B.x"
    assert claimed_hash(b"before" + HEAD, 5) == ""
    assert claimed_hash(MARK + b"y" * 2000) == "y" * (1024 - len(MARK))
    assert claimed_hash(MARK + b"y" * (1023 - len(MARK)) + b"\nz") == "y" * (1023 - len(MARK))
    assert claimed_hash(b"before" + MARK + b"y" * 2000, 6) == "y" * (1024 - len(MARK))
    scan = FrameScan(SMALL)
    assert scan.data_length is None


# --- lengths, refusals, manifests -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0", 0),
        ("9", 9),
        ("10", RecordRule.LENGTH_LIMIT),
        ("99999", RecordRule.LENGTH_LIMIT),
        ("00", RecordRule.LENGTH_LEADING_ZERO),
        ("05", RecordRule.LENGTH_LEADING_ZERO),
        ("", RecordRule.LENGTH_DECIMAL),
        ("-1", RecordRule.LENGTH_DECIMAL),
        ("١", RecordRule.LENGTH_DECIMAL),
        ("²", RecordRule.LENGTH_DECIMAL),
    ],
)
def test_a_length_is_a_canonical_decimal_up_to_the_limit(text: str, found: int | RecordRule) -> None:
    if isinstance(found, int):
        assert parse_length(text, 9) == found
        return
    with pytest.raises(InvalidRecord) as caught:
        parse_length(text, 9)
    assert caught.value.rule is found


def test_a_refusal_repeats_no_more_than_80_characters() -> None:
    for found, shown in ((None, ""), (0, "0"), ("x" * 99, "'" + "x" * 79), (["ab"], "['ab']")):
        with pytest.raises(InvalidRecord) as caught:
            refuse(RecordRule.LINE_CR, "message", "place", found)
        assert caught.value.found == shown


def manifest(*headers: tuple[str, str], data: bytes = b"") -> ValidRecord:
    extras = "".join(f"{name}: {value}\n" for name, value in headers).encode()
    return validate(plex_bytes(FIELDS, extras, blob_bytes(data)))


BLOB = RecordHash.of("B", bytes(32))


@pytest.mark.parametrize(
    ("links", "total", "pieces"),
    [
        (["0..3", "3..5"], "5", [(0, 3), (3, 5)]),
        ([], "0", []),
        (["0..1"], "1", [(0, 1)]),
        (["0..3", "4..5"], "5", None),
        (["0..3", "2..5"], "5", None),
        (["1..3"], "3", None),
        (["0..0"], "0", None),
        (["0..3", "3..3"], "3", None),
        (["0..3"], "4", None),
        (["0..3"], "2", None),
        (["0..03"], "3", None),
        (["00..3"], "3", None),
        (["0.3"], "3", None),
        ([f"0..{'9' * 19}"], "9" * 19, [(0, int("9" * 19))]),
        ([f"0..{'9' * 20}"], "9" * 20, None),
    ],
)
def test_the_ranges_of_a_manifest_cover_its_content(
    links: list[str], total: str, pieces: list[tuple[int, int]] | None
) -> None:
    record = manifest(*[("Chunk+Link", f"{link} {BLOB}") for link in links], ("Content-Total-Length", total))
    assert is_manifest(record)
    if pieces is None:
        with pytest.raises(InvalidRecord) as caught:
            manifest_pieces(record)
        assert caught.value.rule == "manifest"
    else:
        assert manifest_pieces(record) == [Piece(start, end, BLOB) for start, end in pieces]
        assert content_length(record) == int(total)


def test_what_a_manifest_may_point_at_and_what_is_none() -> None:
    for target, good in ((BLOB, True), (RecordHash.of("P", bytes(32)), True), (RecordHash.of("S", bytes(32)), False)):
        record = manifest(("Chunk+Link", f"0..3 {target}"), ("Content-Total-Length", "3"))
        if good:
            assert manifest_pieces(record)[0].target == target
        else:
            with pytest.raises(InvalidRecord):
                manifest_pieces(record)
    plain = manifest(("X", "1"))
    assert not is_manifest(plain)
    assert content_length(plain) == 0
    assert full_hash(plain) is None
    assert full_hash(manifest(("Content-Hash-Full", "B.x"), ("X", "1"))) == "B.x"
    filled = manifest(("Content-Total-Length", "3"), data=b"hello")
    assert not is_manifest(filled)
    assert content_length(filled) == 5
    assert not is_manifest(validate(blob_bytes(b"")))
    assert Piece(5, 9, BLOB).header(4) == ("Chunk+Link", f"1..5 {BLOB}")
    twice = manifest(("Content-Total-Length", "3"), ("Content-Total-Length", "3"))
    with pytest.raises(InvalidRecord):
        content_length(twice)


def test_a_thin_record_ends_with_the_markline_of_what_was_inside() -> None:
    for record, inner in ((plex_bytes(), blob_bytes()), (seal_bytes(plex_bytes()), plex_bytes())):
        valid = validate(record)
        thin = thin_form(valid)
        assert thin == record[: record.index(inner) + 55]
        assert thicken(thin, lambda _, inner=inner: inner) == valid  # type: ignore[misc]
    whole = validate(blob_bytes())
    assert thin_form(whole) == whole.stored
    assert thicken(whole.stored, lambda _: None) == whole


def test_what_was_judged_before_is_read_whatever_limits_hold_now() -> None:
    seal = seal_bytes(plex_bytes(), signature="0" * 86)
    assert reread(seal).type == "S"
    with pytest.raises(InvalidRecord):
        validate(seal)
    assert validate(memoryview(plex_bytes())).type == "P"


def test_building_takes_as_much_as_reading_does() -> None:
    limits = RecordLimits(max_data_bytes=3, max_extra_headers=2, max_header_line_bytes=30)
    assert Blob(b"abc", limits).data == b"abc"
    with pytest.raises(InvalidRecord):
        Blob(b"abcd", limits)

    def plex(*headers: tuple[str, str], group: str = "u") -> Plex:
        return Plex(
            group=group, app="a", name="n", tai="1640995237:000000000", headers=headers, limits=limits  # type: ignore[arg-type]
        )  # fmt: skip

    assert plex(("A", "1"), ("A", "2")).headers == (("A", "1"), ("A", "2"))
    assert plex(("A", "x" * 27)).headers == (("A", "x" * 27),)
    for wrong in ([("A", "1")] * 3, [("A", "x" * 28)], [("B", "1"), ("A", "1")], [("A:", "1")], [("A", "\n")]):
        with pytest.raises(InvalidRecord):
            plex(*wrong)


# --- keys -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scalar", [0, N, N + 1, 2**256 - 1])
def test_a_scalar_outside_the_range_is_no_key(scalar: int) -> None:
    with pytest.raises(KeyUnavailable):
        SigningKey(scalar.to_bytes(32, "big"))


def test_the_first_and_last_scalar_are_keys_of_one_verifier() -> None:
    first, last = SigningKey((1).to_bytes(32, "big")), SigningKey((N - 1).to_bytes(32, "big"))
    assert first.verifier == last.verifier
    for short in (bytes(30) + b"\x01", bytes(32) + b"\x01"):
        with pytest.raises(KeyUnavailable):
            SigningKey(short)
    assert SigningKey.generate(lambda size: (1).to_bytes(size, "big")).verifier == first.verifier
    drawn = iter([bytes(32), N.to_bytes(32, "big"), (N - 1).to_bytes(32, "big")])
    assert SigningKey.generate(lambda size: next(drawn)[:size]).verifier == first.verifier


def test_a_secret_is_32_bytes_in_its_text() -> None:
    secret = SigningSecret.generate(lambda size: bytes(range(size)))
    assert secret.material() == bytes(range(32))
    text = f"&.{encode(bytes(range(32)))}.H3"
    assert secret.reveal() == text
    assert SigningSecret.parse(text).material() == bytes(range(32))
    assert first_scalar(secret.material()) == first_scalar(bytes(range(32)))
    for wrong in (
        text[1:],
        text[:-1],
        f"&.{encode(bytes(31))}.H3",
        f"&.{encode(bytes(33))}.H3",
        text.replace(".H3", ""),
    ):
        with pytest.raises(InvalidText):
            SigningSecret.parse(wrong)
    for size in (31, 33, 0):
        with pytest.raises(InvalidText) as caught:
            SigningSecret(bytes(size))
        assert caught.value.found == f"{size} bytes"


@pytest.mark.parametrize("sizes", [(31, 32, 64), (33, 32, 64), (32, 31, 64), (32, 33, 64), (32, 32, 63), (32, 32, 65)])
def test_each_part_of_a_signature_has_its_size(sizes: tuple[int, int, int]) -> None:
    wrong = tuple(bytes(size) for size in sizes)
    with pytest.raises(InvalidSignature, match="verifier and message have 32 bytes, a signature 64"):
        verify(*wrong)  # type: ignore[arg-type]
    good = (KEY.verifier.digest, bytes(32), KEY.sign(bytes(32), b"\x01" * 32))
    assert keys.all_verify([good]) is curve.has_library()
    assert not keys.all_verify([good, wrong])  # type: ignore[list-item]
    assert verify_batch([good, wrong]) == [None, "verifier and message have 32 bytes, a signature 64"]  # type: ignore[list-item]


def test_what_exactly_is_wrong_with_a_signature_is_said() -> None:
    px, message = KEY.verifier.digest, bytes(32)
    signature = KEY.sign(message, b"\x01" * 32)
    rx, s = signature[:32], int.from_bytes(signature[32:], "big")
    e = challenge_scalar(rx, px, message)
    assert combine(px, s, e) == b"\x02" + rx
    for wrong, said in (
        ((px, message, rx + N.to_bytes(32, "big")), "s is not below the order of the curve"),
        ((px, message, P.to_bytes(32, "big") + signature[32:]), "r is not below the field prime"),
        (((5).to_bytes(32, "big"), message, signature), "the verifier is not an x-coordinate of the curve"),
        ((px, b"\x01" * 32, signature), "it was not made by this key over this message"),
    ):
        with pytest.raises(InvalidSignature) as caught:
            verify(*wrong)
        assert caught.value.message == said
    assert keys.mismatch(px, rx, None) == "the signature leads to the point at infinity"
    assert keys.mismatch(px, rx, b"\x03" + rx) == "the signature leads to a point of odd y"
    assert (
        keys.mismatch(px, (P - 1).to_bytes(32, "big"), b"\x02" + px) == "it was not made by this key over this message"
    )


def test_points_add_up_on_the_curve() -> None:
    assert G is not None
    minus = (G[0], P - G[1])
    assert add(G, minus) is None
    assert add(None, G) == G == add(G, None)
    assert add(G, G) == multiply(2, G)
    assert add(multiply(2, G), G) == multiply(3, G) == add(G, add(G, G))
    assert multiply(N, G) is None
    assert multiply(0, G) is None
    assert multiply(N + 5, G) == multiply(5, G)
    assert multiply(N - 1, G) == minus
    for x in (P, P + 1, 5):
        assert lift_x(x) is None
    assert lift_x(G[0]) == G
    for number in range(1, 9):
        point = multiply(number, G)
        assert point is not None
        assert (point[1] ** 2 - point[0] ** 3 - 7) % P == 0
        even = lift_x(point[0])
        assert even is not None
        assert even[1] % 2 == 0
        assert compress(point) == bytes([2 + point[1] % 2]) + point[0].to_bytes(32, "big")
        assert curve.public_point(number.to_bytes(32, "big")) == compress(point)
    with pytest.raises(ValueError, match="infinity"):
        compress(None)
    assert combine(G[0].to_bytes(32, "big"), 5, 5) is None
    assert combine((5).to_bytes(32, "big"), 1, 1) is None
    assert combine(G[0].to_bytes(32, "big"), 7, 4) == compress(multiply(3, G))


def test_a_gate_hears_once_what_a_record_claims_to_be() -> None:
    heard: list[str] = []
    source = ByteSource(plex_bytes())
    with pytest.raises(StopIteration) as done:
        next(frame.read_frame(source, gate=heard.append))
    assert done.value.value == plex_bytes()
    assert heard == [claimed_hash(plex_bytes())]
