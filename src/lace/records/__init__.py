"""Records, their grammar and hashes, keys and signatures (010, 009); and addresses (110).

- *Blob*, *Plex*, *Seal*: opaque bytes; bytes with a coordinate, a time and headers; a Plex with a signature.
- *stored form*: a *markline* that names the record's hash, and the payload that this hash is of.
- *frame*: the bytes of one stored form in a stream (`frame` finds where it ends).
- *head*: everything in front of the data. `parse` reads it by the grammar, `headpattern` with one regular expression.
- *parts*: what a head says, as texts; *part columns*: the parts of many records that are alike (`partcolumns`).
- *valid record*: bytes whose form, hashes and signature were checked. `validate` is the only way to one.
- *verifier*: a public key as text. *Equation*: what one signature claims about points of the curve (`curve`).
- *coordinate*: Group, App and Name. *Tip*: the version of it that counts (`tip`).
- *manifest*: a Plex that lists the Blobs of a long content. *Thin form*: a record without the record inside it.

As a library: docs/records.md. `lace.validate` is the door from bytes, under the name of its module.

Never: a `ValidRecord` is made anywhere but in `validate`; a secret is printed; a limit is decided here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lace.limits import RecordLimits
    from lace.notation.identifiers import RecordHash, Verifier
    from lace.notation.tai import TAI
    from lace.records.frame import delimit, split_records
    from lace.records.grammar import RecordRule
    from lace.records.keys import Signer, SigningKey, SigningSecret, seal, verify_batch
    from lace.records.model import Blob, Parts, Plex, Seal, ValidRecord, sorted_headers
    from lace.records.validate import SignatureTask, signature_task
    from lace.records.write import encode_record

__all__ = [
    "TAI",
    "Blob",
    "Parts",
    "Plex",
    "RecordHash",
    "RecordLimits",
    "RecordRule",
    "Seal",
    "SignatureTask",
    "Signer",
    "SigningKey",
    "SigningSecret",
    "ValidRecord",
    "Verifier",
    "delimit",
    "encode_record",
    "seal",
    "signature_task",
    "sorted_headers",
    "split_records",
    "verify_batch",
]

_HOMES = {
    "lace.limits": "RecordLimits",
    "lace.notation.identifiers": "RecordHash Verifier",
    "lace.notation.tai": "TAI",
    "lace.records.frame": "delimit split_records",
    "lace.records.grammar": "RecordRule",
    "lace.records.keys": "Signer SigningKey SigningSecret seal verify_batch",
    "lace.records.model": "Blob Parts Plex Seal ValidRecord sorted_headers",
    "lace.records.validate": "SignatureTask signature_task",
    "lace.records.write": "encode_record",
}
_NAMES = {name: module for module, names in _HOMES.items() for name in names.split()}


if not TYPE_CHECKING:  # a type checker reads the imports above, so that it finds a name that is misspelt

    def __getattr__(name):
        """Import a public name from the module that defines it, and keep it here."""
        if name not in _NAMES:
            raise AttributeError(f"module 'lace.records' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_NAMES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
