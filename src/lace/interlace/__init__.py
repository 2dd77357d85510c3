"""Interlace (050): two laces converge on the records that both select.

Words of this package:

- *machine*: one side of one exchange. It gets *inputs* and returns *effects*, and touches nothing else.
- *host*: our own side behind a machine: our records, the rules, and what the peer claims.
- *operand*: the rules that a side brings. Two of them make the *plan* of an exchange.
- *epoch*: from one agreement on a plan to the next.
- *phase*: what both sides are doing; the *moves* between phases are a table (`phases`).
- *block*: the facts that a side sends in a phase, up to a blank line.
- *loop*: advertise, request, transfer. A *round* is all loops up to a fixed point.
- *adv*: the block with which a side advertises what it may send: a listing or a summary.
- *way*: how a loop makes both advertisement states known: listed, partitioned, compared, to nothing.
- *claim*: what a peer says about a record; never a fact of ours.
- *partition*: the records whose hashes share a prefix, and a root over them.
- *base*: the sets of the loop before, from which an `adv` may tell changes (070).
- *asker* and *teller*: who decodes a sketch, and who makes it.
- *refused*: received and not kept. *Held back*: wanted, and not asked for because it would not be kept (071).
- *fixed point*: neither side asks for anything, and nothing that is listed can change that.
- *tick*: the time that both sides have reached.

What never happens here: no clock is read, no stream, store or thread is touched, nothing is random. A peer's fault
never raises out of a machine: it is an `Abort` with a reason.
"""
