"""The one way in for bytes that become records, from a bundle, a peer, the pipeline or a put.

    frame  →  judge  →  encode  →  commit
    bytes     010       020        store

- *frame*: the stored bytes of one record, not trusted yet.
- *verdict*: a `ValidRecord`, or a *refusal* with its rule and reason (`judge`).
- *chunk*: frames that are checked and encoded together, here or in a worker process (`check`).
- *bundle*: a file of records, one after the other (`bundles`). A *rejected* piece is bytes of it that are not stored.
- *claim*: the hash under which a peer sent a frame because we asked for it (`received`).
- *batch*: records we built ourselves, on their way into a transaction of bounded size (`batch`).

Rule: limits are handed in, what is refused is a value with its rule and reason, and nothing is acknowledged before it
is durable. Never: bytes reach a store without a verdict; a bad record takes a good one with it.
"""
