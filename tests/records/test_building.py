"""What cannot be written cannot be built."""

from __future__ import annotations

import pytest

from lace.errors import InvalidRecord
from lace.limits import MIB, RecordLimits
from lace.notation.tai import TAI
from lace.records.grammar import RecordRule
from lace.records.keys import SigningKey
from lace.records.model import Blob, Header, Plex, Seal, sorted_headers
from lace.records.validate import validate
from lace.records.write import encode_record

RULE = RecordRule
NOW = TAI("1640995200:000000000")


def plex(group: str = "u", app: str = "a", name: str = "n", tai: str = NOW, headers: tuple[Header, ...] = ()) -> Plex:
    return Plex(group=group, app=app, name=name, tai=TAI(tai), headers=headers)


REFUSED = [
    pytest.param({"group": "g" * 57}, RULE.PATH_SEGMENT_LENGTH, marks=pytest.mark.clause("010-PATH-07")),
    pytest.param({"app": "ok/" + "g" * 57}, RULE.PATH_SEGMENT_LENGTH, marks=pytest.mark.clause("010-PATH-07")),
    pytest.param({"group": "é" * 29}, RULE.PATH_SEGMENT_LENGTH, marks=pytest.mark.clause("010-PATH-07")),
    pytest.param({"name": "n" * 129}, RULE.PATH_SEGMENT_LENGTH, marks=pytest.mark.clause("010-PATH-08")),
    pytest.param({"group": "a//b"}, RULE.PATH_EMPTY_SEGMENT, marks=pytest.mark.clause("010-PATH-02")),
    pytest.param({"group": ""}, RULE.VALUE_EMPTY, marks=pytest.mark.clause("010-HDR-08")),
    pytest.param({"name": "."}, RULE.PATH_DOT_SEGMENT, marks=pytest.mark.clause("010-PATH-03")),
    pytest.param({"name": "a|b"}, RULE.PATH_CHARACTER, marks=pytest.mark.clause("010-PATH-04")),
    pytest.param({"app": "a#b"}, RULE.PATH_NUMBER_SIGN, marks=pytest.mark.clause("010-PATH-05")),
    pytest.param({"name": "a\nb"}, RULE.LINE_CONTROL, marks=pytest.mark.clause("010-HDR-12")),
    pytest.param({"name": "e\u0301"}, RULE.LINE_NFC, marks=pytest.mark.clause("010-HDR-10")),
    pytest.param({"name": "\ud800"}, RULE.LINE_UTF8, marks=pytest.mark.clause("010-HDR-09")),
    pytest.param({"name": "/".join(["n" * 100] * 11)}, RULE.LINE_LENGTH, marks=pytest.mark.clause("010-HDR-13")),
    pytest.param({"tai": "now"}, RULE.TAI_FORM, marks=pytest.mark.clause("010-TAI-02")),
    pytest.param({"headers": (("B", "1"), ("A", "1"))}, RULE.EXTRA_ORDER, marks=pytest.mark.clause("010-EXTRA-02")),
    pytest.param({"headers": (("A", "1"),) * 513}, RULE.EXTRA_COUNT, marks=pytest.mark.clause("010-EXTRA-04")),
    *[
        pytest.param({"headers": ((name, "1"),)}, RULE.EXTRA_RESERVED, marks=pytest.mark.clause("010-EXTRA-05"))
        for name in ("Group", "App", "Name", "TAI", "Data-Length", "Signed-By", "Signature", "Type")
    ],
    pytest.param({"headers": (("🖧", "1"),)}, RULE.EXTRA_MARK, marks=pytest.mark.clause("010-EXTRA-06")),
    pytest.param({"headers": (("A", ""),)}, RULE.VALUE_EMPTY, marks=pytest.mark.clause("010-HDR-08")),
    pytest.param({"headers": (("A: b", "c"),)}, RULE.NAME_COLON, marks=pytest.mark.clause("010-HDR-03")),
    pytest.param({"headers": (("A", "b\r"),)}, RULE.LINE_CR, marks=pytest.mark.clause("010-HDR-11")),
]


@pytest.mark.parametrize(("fields", "rule"), REFUSED)
def test_building_refuses(fields: dict[str, object], rule: RecordRule) -> None:
    with pytest.raises(InvalidRecord) as caught:
        plex(**fields)  # type: ignore[arg-type]  # the cases hold fields of several types
    assert caught.value.rule is rule


@pytest.mark.clause("010-PATH-07", "010-PATH-08", "010-PATH-05")
def test_the_longest_segments_are_accepted() -> None:
    record = plex(group="g" * 56 + "/" + "é" * 28, app="a" * 56, name="n#" + "n" * 126)
    assert validate(encode_record(record)).record == record


@pytest.mark.clause("010-BLOB-08")
def test_a_blob_over_the_limit_is_refused() -> None:
    with pytest.raises(InvalidRecord) as caught:
        Blob(bytes(32 * MIB + 1))
    assert caught.value.rule is RULE.LENGTH_LIMIT
    with pytest.raises(InvalidRecord):
        Blob(b"ab", limits=RecordLimits(max_data_bytes=1))


@pytest.mark.clause("009-TEXT-07", "009-TEXT-05")
def test_a_seal_needs_a_verifier_and_a_signature() -> None:
    seal = SigningKey(bytes(31) + b"\x01").seal(plex())
    for signature in (seal.signature[:-1], seal.signature[:-1] + "1", ""):
        with pytest.raises(InvalidRecord):
            Seal(signed_by=seal.signed_by, signature=signature, plex=seal.plex)


def test_headers_are_sorted_by_name_and_keep_their_order_within_one() -> None:
    assert sorted_headers([("b", "1"), ("a", "2"), ("b", "0"), ("B", "3")]) == (
        ("B", "3"), ("a", "2"), ("b", "1"), ("b", "0"),
    )  # fmt: skip


def test_a_hash_is_computed_once_and_survives_equality() -> None:
    first, second = plex(), plex()
    assert first.hash is first.hash
    assert first == second
    assert hash(first) == hash(second)
