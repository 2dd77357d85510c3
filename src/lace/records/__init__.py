"""010 and 009: records, their grammar and hashes, keys and signatures; and the addresses of 110.

- *Blob*, *Plex*, *Seal*: opaque bytes; bytes with a coordinate, a time and headers; a Plex with a signature.
- *stored form*: a *markline* that names the record's hash, and the payload that this hash is of.
- *frame*: the bytes of one stored form in a stream (`frame` finds where it ends).
- *head*: everything in front of the data. `parse` reads it by the grammar, `headpattern` with one regular expression.
- *parts*: what a head says, as texts; *part columns*: the parts of many records that are alike (`partcolumns`).
- *valid record*: bytes whose form, hashes and signature were checked. `validate` is the only way to one.
- *verifier*: a public key as text. *Equation*: what one signature claims about points of the curve (`curve`).
- *coordinate*: Group, App and Name. *Tip*: the version of it that counts (`tip`).
- *manifest*: a Plex that lists the Blobs of a long content. *Thin form*: a record without the record inside it.

Never: a `ValidRecord` is made anywhere but in `validate`; a secret is printed; a limit is decided here.
"""
