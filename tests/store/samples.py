"""Records for store tests: small, valid, of every kind."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lace.notation.tai import TAI
from lace.records.keys import SigningKey
from lace.records.model import Blob, Header, Plex, sorted_headers
from lace.records.validate import ValidRecord, validate
from lace.records.write import encode_record
from lace.store.bundle import BundleWriter

KEYS = tuple(SigningKey(bytes([0] * 31 + [number])) for number in (1, 2))
AUX = bytes([1]) * 32


def tai(seconds: int) -> TAI:
    return TAI(f"{1_700_000_000 + seconds:010d}:000000000")


def blob(data: bytes) -> ValidRecord:
    return validate(encode_record(Blob(data)))


def plex_of(
    name: str = "n/1",
    *,
    group: str = "u",
    app: str = "ding",
    at: int = 0,
    headers: tuple[Header, ...] = (),
    data: bytes = b"",
) -> Plex:
    return Plex(group=group, app=app, name=name, tai=tai(at), headers=sorted_headers(headers), blob=Blob(data))


def plex(name: str = "n/1", **parts: object) -> ValidRecord:
    return validate(encode_record(plex_of(name, **parts)))  # type: ignore[arg-type]


def bundle_of(path: Path, *pieces: bytes) -> Path:
    """A bundle with its index."""
    with BundleWriter(path) as writer:
        for piece in pieces:
            writer.write(piece)
    return path


@cache
def _sealed(plex_value: Plex, key: int) -> ValidRecord:
    return validate(encode_record(KEYS[key].seal(plex_value, AUX)))


def seal(name: str = "n/1", *, key: int = 0, **parts: object) -> ValidRecord:
    return _sealed(plex_of(name, **parts), key)  # type: ignore[arg-type]


@cache
def assortment() -> tuple[ValidRecord, ...]:
    """Some of everything: links good and bad, repeated headers, one coordinate many times, texts beyond ASCII."""
    target = blob(b"target")
    many = tuple((f"X-{number:03}", str(number)) for number in range(90))
    return (
        target,
        blob(b""),
        plex(),
        plex(at=1),
        plex(at=1, data=b"other"),
        seal(at=2),
        seal(at=2, key=1),
        plex("n/10"),
        plex("n", app="ding/b"),
        plex("ü/é", group="groß", headers=(("Note", "größer"), ("X", "0"))),
        plex("links", headers=(("+Link", f"source {target.hash}"), ("+Link", "malformed"), ("+Link", "a b P.00.H9"))),
        seal("tags", headers=(("Tag", "a"), ("Tag", "b"), ("Tag", "a"), ("Other", "v")), data=b"x" * 3000),
        plex("many", headers=many),
        plex("more", headers=(*many[:5], ("X-000", "twice"))),
        plex("z", group="v", app="ding"),
    )
