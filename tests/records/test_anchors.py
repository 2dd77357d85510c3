"""The regression anchors: what any implementation of the profile must compute."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lace.notation.tai import TAI
from lace.records.keys import SigningKey, SigningSecret, first_scalar
from lace.records.model import Blob, Plex, Seal
from lace.records.validate import validate
from lace.records.write import encode_record

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "anchors.json").read_text(encoding="utf-8"))


def anchor_plex() -> Plex:
    plex = VECTORS["plex"]
    return Plex(
        group=plex["group"],
        app=plex["app"],
        name=plex["name"],
        tai=TAI.parse(plex["tai"]),
        headers=tuple((name, value) for name, value in plex["headers"]),
        blob=Blob(bytes.fromhex(plex["data_hex"])),
    )


def anchor_key() -> SigningKey:
    return SigningKey.from_secret(VECTORS["key"]["secret"])


def anchor_seal() -> Seal:
    return anchor_key().seal(anchor_plex(), aux=bytes.fromhex(VECTORS["seal"]["aux_hex"]))


@pytest.mark.clause("010-BLOB-10", "010-BLOB-01", "010-BLOB-02", "010-MARK-01", "010-MARK-04")
@pytest.mark.parametrize("vector", VECTORS["blobs"], ids=lambda vector: vector["hash"])
def test_a_blob_has_its_hash_and_size(vector: dict[str, object]) -> None:
    blob = Blob(bytes.fromhex(str(vector["data_hex"])))
    stored = encode_record(blob)
    assert (blob.hash, len(stored)) == (vector["hash"], vector["stored_bytes"])
    assert stored.startswith(bytes.fromhex("F09F96A73A20") + str(vector["hash"]).encode() + b"\nData-Length: ")
    assert validate(stored).record == blob


@pytest.mark.clause("010-PLEX-13", "010-PLEX-12")
def test_the_plex_has_its_hash() -> None:
    assert anchor_plex().hash == VECTORS["plex"]["hash"]


@pytest.mark.clause("009-SEC-04", "009-TEXT-02", "009-SEC-01", "009-KEY-04")
def test_the_secret_gives_its_scalar_and_verifier() -> None:
    key = VECTORS["key"]
    material = bytes.fromhex(key["material_hex"])
    assert first_scalar(material).hex() == key["scalar_hex"]
    assert SigningSecret(material).reveal() == key["secret"]
    assert anchor_key().verifier == key["verifier"]


@pytest.mark.clause("009-SIGN-11", "010-SEAL-10", "009-SEAL-01", "010-SEAL-01")
def test_the_seal_has_its_signature_and_hash() -> None:
    seal = anchor_seal()
    assert seal.signature == VECTORS["seal"]["signature"]
    assert seal.hash == VECTORS["seal"]["hash"]
    valid = validate(encode_record(seal))
    assert (valid.hash, valid.record) == (seal.hash, seal)
