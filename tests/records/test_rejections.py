"""Every rule that refuses a record, each by bytes that break this rule alone (all digests are right unless said)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lace.errors import InvalidRecord
from lace.limits import RecordLimits
from lace.notation import b64a
from lace.notation.digest import digest
from lace.records.grammar import MARK, RecordRule
from lace.records.validate import validate
from records.strategies import FIELDS, KEY, blob_bytes, plex_bytes, seal_bytes, stored

BLOB = blob_bytes()
PLEX = plex_bytes()
SEAL = seal_bytes(PLEX)
HASH = BLOB[6:54]


def with_hash(text: bytes, record: bytes = BLOB) -> bytes:
    return MARK + text + b"\n" + record[55:]


def extra(line: bytes) -> bytes:
    return plex_bytes(extras=line)


def seal_head(head: bytes, inner: bytes = PLEX) -> bytes:
    return stored("S", head + inner)


SIGNED_BY = SEAL[55:115]
SIGNATURE = SEAL[115:213]
OTHER_BLOB = blob_bytes(b"other")
BAD_BLOB = BLOB[:6] + OTHER_BLOB[6:55] + BLOB[55:]
BAD_PLEX = PLEX[:6] + plex_bytes(extras=b"A: b\n")[6:55] + PLEX[55:]
FOREIGN_SIGNATURE = b64a.encode(KEY.sign(digest(b"another message"), b"\x01" * 32))
RULE = RecordRule

CASES = [
    # 010 markline
    pytest.param(
        RULE.MARK_DIGEST, BAD_BLOB, id="digest-of-another", marks=pytest.mark.clause("010-MARK-05", "020-FACT-02")
    ),
    pytest.param(RULE.MARK_DIGEST, BLOB[:-1] + b"!", id="payload-changed", marks=pytest.mark.clause("010-MARK-05")),
    pytest.param(RULE.MARK_TYPE, stored("P", BLOB[55:]), id="blob-as-plex", marks=pytest.mark.clause("010-MARK-06")),
    pytest.param(RULE.MARK_TYPE, stored("B", PLEX[55:]), id="plex-as-blob", marks=pytest.mark.clause("010-MARK-06")),
    pytest.param(RULE.MARK_TYPE, stored("P", SEAL[55:]), id="seal-as-plex", marks=pytest.mark.clause("010-MARK-06")),
    pytest.param(RULE.MARK_TYPE, stored("S", PLEX[55:]), id="plex-as-seal", marks=pytest.mark.clause("010-MARK-06")),
    pytest.param(
        RULE.MARK_HASH,
        with_hash(b"X" + HASH[1:]),
        id="letter-x",
        marks=pytest.mark.clause("010-MARK-03", "010-MARK-07"),
    ),
    pytest.param(
        RULE.MARK_HASH, with_hash(b"b" + HASH[1:]), id="letter-b", marks=pytest.mark.clause("010-MARK-07", "020-ID-02")
    ),
    pytest.param(
        RULE.MARK_HASH,
        with_hash(HASH[:-1] + b"4"),
        id="suffix-h4",
        marks=pytest.mark.clause("010-MARK-07", "020-ID-05"),
    ),
    pytest.param(
        RULE.MARK_HASH,
        with_hash(HASH[:-2] + b"h3"),
        id="suffix-h3",
        marks=pytest.mark.clause("010-MARK-07", "020-ID-02"),
    ),
    pytest.param(
        RULE.MARK_HASH, with_hash(HASH[:44] + b"1.H3"), id="filler-bits", marks=pytest.mark.clause("010-MARK-07")
    ),
    pytest.param(
        RULE.MARK_HASH, with_hash(HASH[:40] + b".H3"), id="short-digest", marks=pytest.mark.clause("010-MARK-07")
    ),
    pytest.param(RULE.MARK_FORM, with_hash(HASH + b"\r"), id="mark-cr", marks=pytest.mark.clause("010-MARK-08")),
    pytest.param(
        RULE.MARK_FORM, BLOB.replace(b": ", b":", 1), id="mark-no-space", marks=pytest.mark.clause("010-MARK-08")
    ),
    pytest.param(
        RULE.MARK_FORM, BLOB.replace(b": ", b":  ", 1), id="mark-two-spaces", marks=pytest.mark.clause("010-MARK-08")
    ),
    pytest.param(RULE.MARK_FORM, with_hash(HASH + b" more"), id="mark-more", marks=pytest.mark.clause("010-MARK-08")),
    pytest.param(
        RULE.MARK_FORM, with_hash(HASH + b" "), id="mark-space-after", marks=pytest.mark.clause("010-MARK-08")
    ),
    pytest.param(RULE.MARK_FORM, BLOB[1:], id="mark-cut", marks=pytest.mark.clause("010-MARK-02")),
    pytest.param(RULE.LINE_UNENDED, BLOB[:54], id="markline-only"),
    pytest.param(RULE.LINE_UNENDED, b"", id="empty"),
    # 010 header lines
    pytest.param(RULE.NAME_EMPTY, extra(b": v\n"), id="name-empty", marks=pytest.mark.clause("010-HDR-02")),
    pytest.param(RULE.NAME_COLON, extra(b"A:B: c\n"), id="name-colon", marks=pytest.mark.clause("010-HDR-03")),
    pytest.param(RULE.NAME_SPACE, extra(b"A B: c\n"), id="name-space", marks=pytest.mark.clause("010-HDR-04")),
    pytest.param(RULE.NAME_TAB, extra(b"A\tB: c\n"), id="name-tab", marks=pytest.mark.clause("010-HDR-05")),
    pytest.param(RULE.SEPARATOR, extra(b"A:b\n"), id="no-space", marks=pytest.mark.clause("010-HDR-06", "010-HDR-01")),
    pytest.param(RULE.SEPARATOR, extra(b"A\n"), id="no-colon", marks=pytest.mark.clause("010-HDR-01", "020-FACT-03")),
    pytest.param(RULE.SEPARATOR, extra(b"A:\n"), id="colon-only", marks=pytest.mark.clause("010-HDR-06")),
    pytest.param(RULE.VALUE_EMPTY, extra(b"A: \n"), id="value-empty", marks=pytest.mark.clause("010-HDR-08")),
    pytest.param(
        RULE.LINE_UTF8, extra(b"A: \xc3\x28\n"), id="utf8", marks=pytest.mark.clause("010-HDR-09", "020-FACT-11")
    ),
    pytest.param(RULE.LINE_UTF8, extra(b"A\xff: b\n"), id="utf8-name", marks=pytest.mark.clause("010-HDR-09")),
    pytest.param(
        RULE.LINE_UTF8,
        extra(b"A: \xed\xa0\x80\n"),
        id="surrogate",
        marks=pytest.mark.clause("010-HDR-09", "020-FACT-11"),
    ),
    pytest.param(
        RULE.LINE_UTF8, extra(b"A: \xc0\xaf\n"), id="overlong", marks=pytest.mark.clause("010-HDR-09", "020-FACT-11")
    ),
    pytest.param(
        RULE.LINE_NFC, extra(b"A: e\xcc\x81\n"), id="nfc", marks=pytest.mark.clause("010-HDR-10", "020-FACT-12")
    ),
    pytest.param(RULE.LINE_NFC, extra("e\u0301: b\n".encode()), id="nfc-name", marks=pytest.mark.clause("010-HDR-10")),
    pytest.param(
        RULE.LINE_NFC,
        plex_bytes(FIELDS.replace(b"u", b"e\xcc\x81", 1)),
        id="nfc-group",
        marks=pytest.mark.clause("010-HDR-10"),
    ),
    pytest.param(RULE.LINE_CR, extra(b"A: b\r\n"), id="crlf", marks=pytest.mark.clause("010-HDR-11")),
    pytest.param(RULE.LINE_CR, extra(b"A: b\rc\n"), id="cr", marks=pytest.mark.clause("010-HDR-11")),
    pytest.param(
        RULE.LINE_CR,
        plex_bytes(FIELDS.replace(b"\n", b"\r\n")),
        id="crlf-fields",
        marks=pytest.mark.clause("010-HDR-11"),
    ),
    pytest.param(
        RULE.LINE_LENGTH, extra(b"A: " + b"x" * 1022 + b"\n"), id="line-1025", marks=pytest.mark.clause("010-HDR-13")
    ),
    pytest.param(RULE.LINE_LENGTH, stored("P", b"x" * 2000), id="line-endless", marks=pytest.mark.clause("010-HDR-13")),
    # 010 Blob
    pytest.param(
        RULE.LENGTH_LEADING_ZERO,
        stored("B", b"Data-Length: 00\n\n"),
        id="length-00",
        marks=pytest.mark.clause("010-BLOB-03"),
    ),
    pytest.param(
        RULE.LENGTH_LEADING_ZERO,
        stored("B", b"Data-Length: 011\n\nhello world"),
        id="length-011",
        marks=pytest.mark.clause("010-BLOB-03"),
    ),
    pytest.param(
        RULE.LENGTH_DECIMAL,
        stored("B", b"Data-Length: +2\n\nhi"),
        id="length-sign",
        marks=pytest.mark.clause("010-BLOB-04"),
    ),
    pytest.param(
        RULE.LENGTH_DECIMAL,
        stored("B", b"Data-Length: -0\n\n"),
        id="length-minus",
        marks=pytest.mark.clause("010-BLOB-04"),
    ),
    pytest.param(
        RULE.LENGTH_DECIMAL,
        stored("B", b"Data-Length:  2\n\nhi"),
        id="length-space",
        marks=pytest.mark.clause("010-BLOB-04"),
    ),
    pytest.param(
        RULE.LENGTH_DECIMAL,
        stored("B", b"Data-Length: 2 \n\nhi"),
        id="length-space-after",
        marks=pytest.mark.clause("010-BLOB-04"),
    ),
    pytest.param(
        RULE.LENGTH_DECIMAL,
        stored("B", b"Data-Length: 0x2\n\nhi"),
        id="length-hex",
        marks=pytest.mark.clause("010-BLOB-04"),
    ),
    pytest.param(
        RULE.LENGTH_DECIMAL,
        stored("B", b"Data-Length: 2.0\n\nhi"),
        id="length-fraction",
        marks=pytest.mark.clause("010-BLOB-04"),
    ),
    pytest.param(
        RULE.LENGTH_DECIMAL,
        stored("B", "Data-Length: ２\n\nhi".encode()),
        id="length-wide",
        marks=pytest.mark.clause("010-BLOB-04"),
    ),
    pytest.param(
        RULE.LENGTH_MISSING, stored("B", b"Length: 2\n\nhi"), id="length-name", marks=pytest.mark.clause("010-BLOB-05")
    ),
    pytest.param(
        RULE.LENGTH_MISSING, stored("B", b"\nhi"), id="length-missing", marks=pytest.mark.clause("010-BLOB-05")
    ),
    pytest.param(
        RULE.BLANK_LINE_MISSING,
        stored("B", b"Data-Length: 3\nhi\n"),
        id="no-blank",
        marks=pytest.mark.clause("010-BLOB-05"),
    ),
    pytest.param(
        RULE.BLANK_LINE_MISSING,
        stored("B", b"Data-Length: 2\nA: b\n\nhi"),
        id="blob-header",
        marks=pytest.mark.clause("010-BLOB-05"),
    ),
    pytest.param(
        RULE.DATA_SHORT,
        stored("B", b"Data-Length: 3\n\nhi"),
        id="short",
        marks=pytest.mark.clause("010-BLOB-06", "020-FACT-03"),
    ),
    pytest.param(
        RULE.TRAILING_BYTES,
        stored("B", b"Data-Length: 2\n\nhi\n"),
        id="final-lf",
        marks=pytest.mark.clause("010-BLOB-07", "020-FACT-03"),
    ),
    pytest.param(
        RULE.LENGTH_LIMIT,
        stored("B", b"Data-Length: 33554433\n\n"),
        id="over-32-mib",
        marks=pytest.mark.clause("010-BLOB-08"),
    ),
    pytest.param(
        RULE.LENGTH_LIMIT,
        stored("B", b"Data-Length: " + b"9" * 900 + b"\n\n"),
        id="huge",
        marks=pytest.mark.clause("010-BLOB-08"),
    ),
    # 010 Plex
    *[
        pytest.param(
            RULE.FIELD_MISSING,
            plex_bytes(b"".join(FIELDS.splitlines(True)[:i] + FIELDS.splitlines(True)[i + 1 :])),
            id=f"missing-{i}",
            marks=pytest.mark.clause("010-PLEX-02", "020-FACT-03"),
        )
        for i in range(4)
    ],
    *[
        pytest.param(
            RULE.FIELD_REPEATED,
            plex_bytes(b"".join(sorted([*FIELDS.splitlines(True), line], key=FIELDS.index))),
            id=f"repeated-{line[:4].decode()}",
            marks=pytest.mark.clause("010-PLEX-03"),
        )
        for line in FIELDS.splitlines(True)
    ],
    pytest.param(
        RULE.FIELD_ORDER,
        plex_bytes(b"".join(reversed(FIELDS.splitlines(True)))),
        id="reversed",
        marks=pytest.mark.clause("010-PLEX-04"),
    ),
    pytest.param(
        RULE.FIELD_ORDER,
        plex_bytes(b"App: a\nGroup: u\nName: n\nTAI: 1640995200:000000000\n"),
        id="swapped",
        marks=pytest.mark.clause("010-PLEX-04", "010-PLEX-01"),
    ),
    pytest.param(
        RULE.EXTRA_EARLY,
        plex_bytes(FIELDS.replace(b"TAI", b"A: b\nTAI")),
        id="extra-early",
        marks=pytest.mark.clause("010-PLEX-06"),
    ),
    pytest.param(
        RULE.EXTRA_EARLY, plex_bytes(b"A: b\n" + FIELDS), id="extra-first", marks=pytest.mark.clause("010-PLEX-06")
    ),
    pytest.param(RULE.BLANK_LINE, extra(b"\n"), id="plex-blank", marks=pytest.mark.clause("010-PLEX-08")),
    pytest.param(RULE.EMBEDDED_MISSING, plex_bytes(inner=b""), id="no-blob", marks=pytest.mark.clause("010-PLEX-09")),
    pytest.param(
        RULE.EMBEDDED_TYPE, plex_bytes(inner=PLEX), id="plex-in-plex", marks=pytest.mark.clause("010-PLEX-09")
    ),
    pytest.param(
        RULE.EMBEDDED_TYPE, plex_bytes(inner=SEAL), id="seal-in-plex", marks=pytest.mark.clause("010-PLEX-09")
    ),
    pytest.param(
        RULE.INNER_DIGEST,
        plex_bytes(inner=BAD_BLOB),
        id="bad-blob",
        marks=pytest.mark.clause("010-PLEX-10", "020-FACT-04"),
    ),
    pytest.param(
        RULE.MARK_HASH,
        plex_bytes(inner=with_hash(b"B.nothing.H3")),
        id="bad-inner-hash",
        marks=pytest.mark.clause("010-PLEX-09"),
    ),
    # The inner digest covers all that follows, so bytes after the Blob break it; if it covers them, the length does.
    pytest.param(
        RULE.INNER_DIGEST, plex_bytes(inner=BLOB + b"\n"), id="after-blob", marks=pytest.mark.clause("010-PLEX-11")
    ),
    pytest.param(
        RULE.TRAILING_BYTES,
        plex_bytes(inner=stored("B", BLOB[55:] + b"\n")),
        id="in-blob",
        marks=pytest.mark.clause("010-PLEX-11"),
    ),
    *[
        pytest.param(
            RULE.TAI_FORM,
            plex_bytes(FIELDS.replace(b"1640995200:000000000", text)),
            id=f"tai-{number}",
            marks=pytest.mark.clause("010-TAI-02"),
        )
        for number, text in enumerate(
            [
                b"164099520:000000000",
                b"01640995200:000000000",
                b"1640995200:00000000",
                b"1640995200:0000000000",
                b"1640995200",
                b"-640995200:000000000",
                b"+640995200:000000000",
                b"1640995200.000000000",
                b" 1640995200:000000000",
                b"1640995200:000000000 ",
                b"1640995200: 00000000",
                "164099520２:000000000".encode(),
            ]
        )
    ],
    pytest.param(
        RULE.EXTRA_ORDER,
        extra(b"B: 1\nA: 2\n"),
        id="extra-order",
        marks=pytest.mark.clause("010-EXTRA-01", "010-EXTRA-02"),
    ),
    pytest.param(
        RULE.EXTRA_ORDER,
        extra("\U00010000: 1\n\ufffd: 2\n".encode()),
        id="extra-utf16-order",
        marks=pytest.mark.clause("010-EXTRA-02"),
    ),
    pytest.param(
        RULE.EXTRA_ORDER, extra(b"a: 1\nB: 2\n"), id="extra-case-order", marks=pytest.mark.clause("010-EXTRA-02")
    ),
    pytest.param(RULE.EXTRA_COUNT, extra(b"A: b\n" * 513), id="513-extras", marks=pytest.mark.clause("010-EXTRA-04")),
    pytest.param(RULE.EXTRA_MARK, extra("🖧x: v\n".encode()), id="extra-mark", marks=pytest.mark.clause("010-EXTRA-06")),
    pytest.param(
        RULE.EXTRA_MARK, extra("⋯🖧: v\n".encode()), id="extra-trailer", marks=pytest.mark.clause("010-EXTRA-07")
    ),
    pytest.param(
        RULE.EXTRA_MARK, extra("⋯🖧x: v\n".encode()), id="extra-trailer-x", marks=pytest.mark.clause("010-EXTRA-07")
    ),
    *[
        pytest.param(
            RULE.EXTRA_RESERVED,
            extra(f"{name}: B\n".encode()),
            id=f"reserved-{name}",
            marks=pytest.mark.clause("010-EXTRA-05", "020-FIELD-26"),
        )
        for name in ("Data-Length", "Signature", "Signed-By", "Type")  # written out: the clause, not our constant
    ],
    *[
        pytest.param(
            RULE.FIELD_REPEATED,
            extra(f"{name}: u\n".encode()),
            id=f"reserved-{name}",
            marks=pytest.mark.clause("010-EXTRA-05", "020-FIELD-26"),
        )
        for name in ("Group", "App", "Name", "TAI")
    ],
    # 010 paths
    pytest.param(
        RULE.PATH_NUMBER_SIGN,
        plex_bytes(FIELDS.replace(b"Group: u", b"Group: u#1")),
        id="group-number",
        marks=pytest.mark.clause("010-PATH-05"),
    ),
    pytest.param(
        RULE.PATH_NUMBER_SIGN,
        plex_bytes(FIELDS.replace(b"App: ding", b"App: #")),
        id="app-number",
        marks=pytest.mark.clause("010-PATH-05"),
    ),
    # 010 Seal
    pytest.param(RULE.FIELD_MISSING, seal_head(SIGNED_BY), id="no-signature", marks=pytest.mark.clause("010-SEAL-02")),
    pytest.param(RULE.FIELD_MISSING, seal_head(SIGNATURE), id="no-signer", marks=pytest.mark.clause("010-SEAL-02")),
    pytest.param(
        RULE.FIELD_REPEATED,
        seal_head(SIGNED_BY + SIGNED_BY + SIGNATURE),
        id="two-signers",
        marks=pytest.mark.clause("010-SEAL-02"),
    ),
    pytest.param(
        RULE.FIELD_REPEATED,
        seal_head(SIGNED_BY + SIGNATURE + SIGNATURE),
        id="two-signatures",
        marks=pytest.mark.clause("010-SEAL-02"),
    ),
    pytest.param(
        RULE.FIELD_ORDER, seal_head(SIGNATURE + SIGNED_BY), id="seal-order", marks=pytest.mark.clause("010-SEAL-03")
    ),
    pytest.param(
        RULE.SEAL_EXTRA,
        seal_head(SIGNED_BY + SIGNATURE + b"X: y\n"),
        id="seal-extra",
        marks=pytest.mark.clause("010-SEAL-04"),
    ),
    pytest.param(
        RULE.SEAL_EXTRA,
        seal_head(SIGNED_BY + SIGNATURE + b"X: y\n" * 600),
        id="seal-extras",
        marks=pytest.mark.clause("010-SEAL-04"),
    ),
    pytest.param(  # twice as many lines as a Seal has, and one, are looked at; what stands behind them is not
        RULE.FIELD_MISSING,
        seal_head(b"X: y\n" * 5 + SIGNED_BY + SIGNATURE),
        id="seal-behind-extras",
        marks=pytest.mark.clause("010-SEAL-04"),
    ),
    pytest.param(
        RULE.EXTRA_EARLY,
        seal_head(b"X: y\n" * 3 + SIGNED_BY + SIGNATURE),
        id="seal-behind-few-extras",
        marks=pytest.mark.clause("010-SEAL-04"),
    ),
    pytest.param(
        RULE.BLANK_LINE,
        seal_head(SIGNED_BY + SIGNATURE + b"\n"),
        id="seal-blank",
        marks=pytest.mark.clause("010-SEAL-04"),
    ),
    pytest.param(
        RULE.INNER_DIGEST,
        seal_head(SIGNED_BY + SIGNATURE, PLEX + b"\n"),
        id="after-plex",
        marks=pytest.mark.clause("010-SEAL-04"),
    ),
    pytest.param(
        RULE.EMBEDDED_MISSING,
        seal_head(SIGNED_BY + SIGNATURE, b""),
        id="no-plex",
        marks=pytest.mark.clause("010-SEAL-05"),
    ),
    pytest.param(
        RULE.EMBEDDED_TYPE,
        seal_head(SIGNED_BY + SIGNATURE, BLOB),
        id="blob-in-seal",
        marks=pytest.mark.clause("010-SEAL-05"),
    ),
    pytest.param(
        RULE.EMBEDDED_TYPE,
        seal_head(SIGNED_BY + SIGNATURE, SEAL),
        id="seal-in-seal",
        marks=pytest.mark.clause("010-SEAL-05"),
    ),
    pytest.param(
        RULE.INNER_DIGEST, seal_bytes(BAD_PLEX), id="bad-plex", marks=pytest.mark.clause("010-SEAL-06", "020-FACT-04")
    ),
    pytest.param(
        RULE.INNER_DIGEST,
        seal_bytes(plex_bytes(inner=BAD_BLOB)),
        id="bad-blob-in-seal",
        marks=pytest.mark.clause("010-SEAL-06", "020-FACT-04"),
    ),
    *[
        pytest.param(
            RULE.SEAL_VERIFIER,
            seal_bytes(PLEX, signed_by=text),
            id=f"verifier-{number}",
            marks=pytest.mark.clause("010-SEAL-07", "009-TEXT-05"),
        )
        for number, text in enumerate(
            [
                "W" + KEY.verifier[1:],
                KEY.verifier[:-1] + "4",
                KEY.verifier[2:],
                "V.0000.H3",
                KEY.verifier[:44] + "1.H3",
                KEY.verifier + " ",
            ]
        )
    ],
    *[
        pytest.param(
            RULE.SEAL_SIGNATURE_TEXT,
            seal_bytes(PLEX, signature=text),
            id=f"signature-{number}",
            marks=pytest.mark.clause("010-SEAL-08", "009-TEXT-07"),
        )
        for number, text in enumerate(
            [FOREIGN_SIGNATURE[:-1], FOREIGN_SIGNATURE + "0", FOREIGN_SIGNATURE[:-1] + "1", "=" * 86]
        )
    ],
    pytest.param(
        RULE.SEAL_SIGNATURE,
        seal_bytes(PLEX, signature=FOREIGN_SIGNATURE),
        id="foreign-signature",
        marks=pytest.mark.clause("010-SEAL-09", "020-FACT-05"),
    ),
    pytest.param(
        RULE.SEAL_SIGNATURE,
        seal_bytes(PLEX, signed_by="V." + "0" * 43 + ".H3"),
        id="signer-not-on-curve",
        marks=pytest.mark.clause("010-SEAL-09"),
    ),
]


@pytest.mark.parametrize(("rule", "bad"), CASES)
def test_a_record_that_breaks_one_rule_is_refused_by_that_rule(rule: RecordRule, bad: bytes) -> None:
    with pytest.raises(InvalidRecord) as caught:
        validate(bad)
    assert caught.value.rule is rule


def test_what_a_refusal_says_is_what_it_said_when_it_was_recorded() -> None:
    """Rule, place and finding are what a person goes by: a change of them is meant, or a mistake."""
    said = {}
    for case in CASES:
        with pytest.raises(InvalidRecord) as caught:
            validate(case.values[1])
        said[case.id] = f"{caught.value.rule}: {caught.value}"
    recorded = Path(__file__).with_name("refusals.json")
    assert said == json.loads(recorded.read_text(encoding="utf-8"))


@pytest.mark.clause("010-MARK-03")
def test_bytes_that_begin_with_an_empty_line_are_refused_by_their_markline() -> None:
    with pytest.raises(InvalidRecord) as caught:
        validate(b"\n" + BLOB)
    assert (caught.value.rule, caught.value.place) == (RULE.MARK_FORM, "line 1")


PATH_CASES = [
    pytest.param(RULE.PATH_EMPTY_SEGMENT, b"/a", marks=pytest.mark.clause("010-PATH-02", "010-PATH-01")),
    pytest.param(RULE.PATH_EMPTY_SEGMENT, b"a/", marks=pytest.mark.clause("010-PATH-02")),
    pytest.param(RULE.PATH_EMPTY_SEGMENT, b"a//b", marks=pytest.mark.clause("010-PATH-02")),
    pytest.param(RULE.PATH_EMPTY_SEGMENT, b"/", marks=pytest.mark.clause("010-PATH-02")),
    pytest.param(RULE.PATH_DOT_SEGMENT, b".", marks=pytest.mark.clause("010-PATH-03")),
    pytest.param(RULE.PATH_DOT_SEGMENT, b"..", marks=pytest.mark.clause("010-PATH-03")),
    pytest.param(RULE.PATH_DOT_SEGMENT, b"a/..", marks=pytest.mark.clause("010-PATH-03")),
    pytest.param(RULE.PATH_DOT_SEGMENT, b"./a", marks=pytest.mark.clause("010-PATH-03")),
    pytest.param(RULE.PATH_CHARACTER, b"a{b", marks=pytest.mark.clause("010-PATH-04")),
    pytest.param(RULE.PATH_CHARACTER, b"a}b", marks=pytest.mark.clause("010-PATH-04")),
    pytest.param(RULE.PATH_CHARACTER, b"x/a|b", marks=pytest.mark.clause("010-PATH-04")),
]


@pytest.mark.parametrize("line", FIELDS.splitlines(True)[:3], ids=["Group", "App", "Name"])
@pytest.mark.parametrize(("rule", "path"), PATH_CASES)
def test_a_bad_path_is_refused_in_each_of_the_three(rule: RecordRule, path: bytes, line: bytes) -> None:
    name = line.partition(b":")[0]
    with pytest.raises(InvalidRecord) as caught:
        validate(plex_bytes(FIELDS.replace(line, name + b": " + path + b"\n")))
    assert (caught.value.rule, caught.value.place) == (rule, name.decode())


CONTROLS = [byte for byte in (*range(0x20), 0x7F) if byte not in (0x0A, 0x0D)]


@pytest.mark.clause("010-HDR-12")
@pytest.mark.parametrize("byte", CONTROLS)
@pytest.mark.parametrize("line", [b"A: b%cc\n", b"A%cB: c\n"], ids=["value", "name"])
def test_control_bytes_are_refused_in_names_and_values(byte: int, line: bytes) -> None:
    with pytest.raises(InvalidRecord) as caught:
        validate(extra(line % byte))
    tab_in_name = byte == 9 and line.startswith(b"A%c")
    assert caught.value.rule is (RULE.NAME_TAB if tab_in_name else RULE.LINE_CONTROL)


def test_every_rule_has_a_case() -> None:
    built_only = {RULE.PATH_SEGMENT_LENGTH}
    elsewhere = {RULE.LINE_CONTROL}  # test_control_bytes_are_refused_in_names_and_values
    assert {case.values[0] for case in CASES + PATH_CASES} | built_only | elsewhere == set(RecordRule)


@pytest.mark.clause("010-BLOB-08", "010-HDR-13", "010-EXTRA-04")
def test_limits_come_from_the_caller() -> None:
    tight = RecordLimits(max_data_bytes=1, max_header_line_bytes=60, max_extra_headers=1)
    for record, rule in [
        (BLOB, RULE.LENGTH_LIMIT),
        (extra(b"A: b\nA: b\n"), RULE.EXTRA_COUNT),
        (extra(b"A: " + b"x" * 58 + b"\n"), RULE.LINE_LENGTH),
    ]:
        validate(record)
        with pytest.raises(InvalidRecord) as caught:
            validate(record, limits=tight)
        assert caught.value.rule is rule
