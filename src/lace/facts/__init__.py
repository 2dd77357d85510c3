"""020: the facts that a validated record gives, and the views through which rules see them.

`Have`, `Field`, `RecordLink`, `BlobHash` and `PlexHash` are *record facts*: functions of a record's bytes. *Runtime
facts* come from the link, *advertisement facts* from the peer's claims. A *view* is the part of the record facts that
a viewer's rules may read. What never happens here: no fact is derived from a record that was not validated.
"""
