"""How two sets of ids differ, for anybody's ids of 16 to 32 bytes, in bytes near the size of the difference (070).

    ours = Reconciler(my_ids, nonce=os.urandom(16), begins=True)
    message = ours.begin()
    while message:
        send(message)
        message = ours.receive(receive())
    ours.difference.lacking, ours.difference.spare

It does no I/O: messages are bytes that the caller carries, one at a time and in turns, each whole. The sums, estimates
and sketches are those of exchanges between laces; the messages are of this package, because ids here need no record.

Rule: it opens nothing, waits for nothing and draws no randomness; a peer that lies costs one bounded message.
"""

from lace.reconcile.reconciler import ReconcileLimits, Reconciler, SetDifference

__all__ = ["ReconcileLimits", "Reconciler", "SetDifference"]
