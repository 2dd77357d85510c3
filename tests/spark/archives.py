"""Records, bundles and damage for the Spark tests."""

from __future__ import annotations

import random
from pathlib import Path

from lace.notation.tai import TAI
from lace.records.keys import SigningKey
from lace.records.model import Blob, Plex, Record, ValidRecord, sorted_headers
from lace.records.validate import validate
from lace.records.write import encode_record
from lace.store.bundle import BundleWriter


def make_records(count: int, seed: int = 1) -> list[ValidRecord]:
    """Blobs, Plexes and Seals with headers, repeated headers and links, all different."""
    rng = random.Random(seed)
    keys = [SigningKey(rng.randbytes(32)) for _ in range(3)]
    made: dict[str, ValidRecord] = {}
    while len(made) < count:
        valid = validate(encode_record(_record(rng, keys, list(made))))
        made[valid.hash] = valid
    return list(made.values())


def _record(rng: random.Random, keys: list[SigningKey], known: list[str]) -> Record:
    headers = [("X-Tag", rng.choice("abcé")) for _ in range(rng.randrange(3))]
    if known and rng.random() < 0.5:
        headers.append(("+Link", f"evidence {rng.choice(known)}"))
    if rng.random() < 0.1:
        headers.append(("+Link", "malformed"))
    plex = Plex(
        group=rng.choice(["u", "keys"]),
        app=rng.choice(["ding", "member", "blocked"]),
        name=rng.choice([f"links/{rng.randrange(50)}", "links/a/msg", str(rng.choice(keys).verifier)]),
        tai=TAI(f"16{rng.randrange(10**8):08d}:000000000"),
        headers=sorted_headers(headers),
        blob=Blob(rng.randbytes(rng.randrange(60))),
    )
    aux = rng.randbytes(32)
    return rng.choice([plex, plex.blob, rng.choice(keys).seal(plex, aux), rng.choice(keys).seal(plex, aux)])


def write_bundle(path: Path, records: list[ValidRecord]) -> Path:
    """A good bundle."""
    with BundleWriter(path) as bundle:
        for valid in records:
            bundle.write(valid.stored)
    return path
