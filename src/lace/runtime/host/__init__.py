"""Our own side of a link: what a machine asks about records, answered over a store.

The words of this floor:

- *host*: answers everything that the machine of one link asks (`host.LocalHost`; `linkhost` is what all hosts share).
- *agreed*: what is worked with under one plan: our set, and the peer's claims.
- *set comparer*: our set beside a peer's: measured, sketched, decoded, taken over (`setcomparer`).
- *cursor*: what is kept of a peer's claims until it comes again (`cursors`).
- *gate*: what a peer may bring: quotas, dates, limits and room on the disk (`quotas`).
- *refused before*: records that came and were not kept, so that they are not asked for again (`refusedbefore`).
- *receipt*: a record that says that another one was stored (`receipts`).

What never happens here: bytes are not read from or written to a stream, and no rule is evaluated except by asking
`lace.runtime.rules`.
"""
