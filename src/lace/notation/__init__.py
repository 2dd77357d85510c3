"""The small notations every layer writes in (006).

- *B64A*: base64 whose alphabet is in ASCII order. *Digest*: BLAKE3-256. *TAI*: a time as text.
- *record hash*, *verifier*, *plan id*: identifiers, each a type with its own pattern (`identifiers`).
- *fact*: a predicate and its values; *fact line*: a fact as one line of text.
- *byte source*: a buffer that gives lines and runs of bytes out of any split of a stream.

Rule: one text for one value, and anything else is refused. Never: files, sockets, clocks; `compiled` alone reads the
environment, to know whether compiled extras may be used.
"""
