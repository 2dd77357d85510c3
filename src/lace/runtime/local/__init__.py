"""Both sides of an exchange in one process, previews, and a relay between two peers.

- **party**: what one side brings: its store, its terms, who it is (`party`).
- **direct session**: a machine whose peer is in this process; values travel instead of bytes (`local`).
- **side**: a direct session, its host and the stepper between them; two sides are taken in turn (`local`).
- **fixed point**: what two stores remember of the last exchange that had nothing left to do (`fixedpoint`).
- **follow**: an open exchange, as a stream of events (`follow`).
- **preview**: an exchange in which nothing moves (`preview`).
- **relay**: two peers elsewhere, and we between them; nothing is written to a disk (`relay`).

What never happens here: no side reads the other's store, and no record is stored that was not judged.
"""
