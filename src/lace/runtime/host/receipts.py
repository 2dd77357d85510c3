"""Receipts (050): what a receiver may publish after storing records.

Rule: a receipt is an ordinary Seal in the receiver's own store; no exchange needs one.
"""

from __future__ import annotations

from collections.abc import Iterable

from lace.notation.identifiers import RecordHash, Verifier
from lace.notation.tai import TAI
from lace.records.keys import Signer, seal
from lace.records.model import Plex, Seal, sorted_headers
from lace.records.validate import validate
from lace.records.write import encode_record
from lace.store.base import RecordStore

RECEIPT_GROUP, RECEIPT_APP = "lace", "receipt"
STORED_HASH, STORED_FROM = "Stored-Hash", "Stored-From"


def make_receipt(record: RecordHash, peer: Verifier, key: Signer, tai: TAI) -> Seal:
    """The receipt for one stored record (050-RCPT-02, 050-RCPT-03)."""
    headers = sorted_headers([(STORED_HASH, record), (STORED_FROM, peer)])
    return seal(Plex(group=RECEIPT_GROUP, app=RECEIPT_APP, name=f"store/{record}", tai=tai, headers=headers), key)


def publish_receipts(
    store: RecordStore, received: Iterable[RecordHash], peer: Verifier, key: Signer, tai: TAI
) -> list[RecordHash]:
    """Store a receipt for each record; receipts are not receipted themselves."""
    receipts = [
        validate(encode_record(make_receipt(record, peer, key, tai)), verify_signature=False)
        for record in received
        if not is_receipt(store, record)
    ]
    return [result.hash for result in store.put(receipts)] if receipts else []


def is_receipt(store: RecordStore, record: RecordHash) -> bool:
    """Whether a stored record is a receipt: without this, two receipting sides would never come to rest."""
    stored = store.get(record)
    if stored is None or record.type != "S":
        return False
    parts = validate(stored, verify_signature=False).parts
    return (parts.group, parts.app) == (RECEIPT_GROUP, RECEIPT_APP)
