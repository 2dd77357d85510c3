"""The one way in for bytes that become records, from a bundle, a peer, the pipeline or a put.

    frame  →  judge  →  encode  →  commit
    bytes     010       020        store

- `judge`: a verdict on each of many frames. `check`: the good ones encoded too; `checkers`: here or in workers.
- `bundles`: files of records. `received`: what a peer sent under hashes that were asked for. `batch`: built records.

Rule: limits are handed in, what is refused is a value with its rule and reason, and nothing is acknowledged before it
is durable.
"""
