"""What may be sent and requested under a policy: evaluated once, followed as the store changes, shared by links.

The words of this floor:

- *policy*: what an agreed plan means on this side, as one value (`policy.LinkPolicy`).
- *runtime facts*: what rules may know about the link itself, as its transport and the time.
- *claims*: what the peer says it has. *Feeding* is which of them an evaluation has to see (`feeding`).
- *evaluator*: answers the two questions of a policy over a store, what may be sent and what may be requested.
- *whole* and *change*: an evaluation of everything, and what is different since the one before (`evaluator.Delta`).
- *by record*: rules that look at one record at a time need nothing remembered to follow the store (`byrecord`).
- *part links*: which manifests name which parts, so that content is followed by record too (`partlinks`).
- *generation*: one moment of the set that may be sent; it never changes (`generation`).
- *followed set*: the newest generation and how the next one is found; *private* to a link, or *shared* (`followedset`).
- *origin*: where the newest generation of a shared set comes from.
- *kept set*: a generation that is kept with the lace for the next process (`keptsets`).
- *bill*: who pays for what several links use (`bill`).
- *policy book*: which links share which set (`policybook`).
- *guest*: rules that a peer wrote; *house* and *room*: the processes that they run in (`guests`, `guesthouse`).

What never happens here: a record is not sent, requested or stored; a peer's claim does not become a fact of the store;
an answer does not depend on which of the ways found it, or on which link asked first.
"""
