"""Records for property tests, and stored bytes made by hand so that a reader sees what no writer would write."""

from __future__ import annotations

from hypothesis import strategies as st

from lace.notation.digest import digest
from lace.notation.identifiers import RecordHash
from lace.notation.tai import MAX_TAI_NS, TAI
from lace.notation.text import is_nfc
from lace.records.grammar import MARK, RESERVED_NAMES
from lace.records.keys import SigningKey
from lace.records.model import Blob, Plex, Record, sorted_headers

KEY = SigningKey(bytes(31) + b"\x07")
MARK_BEGINNINGS = ("\U0001f5a7", "\u22ef\U0001f5a7")


def stored(kind: str, payload: bytes) -> bytes:
    """A stored record of any payload, under its right digest."""
    return MARK + RecordHash.of(kind, digest(payload)).encode() + b"\n" + payload


def blob_bytes(data: bytes = b"hi") -> bytes:
    return stored("B", b"Data-Length: %d\n\n" % len(data) + data)


FIELDS = b"Group: u\nApp: ding\nName: links/1\nTAI: 1640995200:000000000\n"


def plex_bytes(head: bytes = FIELDS, extras: bytes = b"", inner: bytes | None = None) -> bytes:
    return stored("P", head + extras + (blob_bytes() if inner is None else inner))


def seal_bytes(inner: bytes, signed_by: str | None = None, signature: str | None = None) -> bytes:
    from lace.notation import b64a

    msg32 = digest(inner[55:])
    text = b64a.encode(KEY.sign(msg32, b"\x01" * 32)) if signature is None else signature
    head = f"Signed-By: {KEY.verifier if signed_by is None else signed_by}\nSignature: {text}\n"
    return stored("S", head.encode() + inner)


_TEXT = st.text(
    st.one_of(st.characters(min_codepoint=32, max_codepoint=126), st.sampled_from("éß漢🖧⋯\u00a0\u2028\u0301")),
    min_size=1,
    max_size=12,
).filter(is_nfc)
SEGMENTS = _TEXT.filter(lambda text: text not in (".", "..") and not set(text) & set("/{}|#"))
PATHS = st.lists(SEGMENTS, min_size=1, max_size=3).map("/".join).filter(is_nfc)
EXTRA_NAMES = st.one_of(st.sampled_from(["+Link", "X", "X-Custom", "Chunk+Link", "group"]), _TEXT).filter(
    lambda name: (
        not set(name) & set(": ")
        and name not in RESERVED_NAMES
        and not name.startswith(MARK_BEGINNINGS)
        and is_nfc(name)
    )
)
HEADERS = st.lists(st.tuples(EXTRA_NAMES, _TEXT), max_size=5).map(sorted_headers)
DATA = st.one_of(st.binary(max_size=60), st.sampled_from([b"\n\n", MARK + b"B.", b"Data-Length: 5\n\nhello", b"\r\n"]))
BLOBS = st.builds(Blob, DATA)
TAIS = st.integers(0, MAX_TAI_NS).map(TAI.from_ns)
PLEXES = st.builds(
    lambda group, app, name, tai, headers, blob: Plex(
        group=group, app=app, name=name, tai=tai, headers=headers, blob=blob
    ),
    PATHS,
    PATHS,
    PATHS,
    TAIS,
    HEADERS,
    BLOBS,
)
SEALS = PLEXES.map(lambda plex: KEY.seal(plex, aux=b"\x05" * 32))
RECORDS: st.SearchStrategy[Record] = st.one_of(BLOBS, PLEXES, SEALS)
