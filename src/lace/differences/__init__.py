"""How two sets of records differ, at the price of the difference (070).

Words of this package:

- *ids*: record hashes as sorted columns: four words and a letter each (`ids`). An *id set* follows changes (`idset`).
- *key*: what both hellos of a link make. A *keyed id* is a record under it; its first half is the *short id*.
- *measure*: count, two sums and some counters of a set under a key. Linear: the measures of two parts add up.
- *estimate*: about how many records two measured sets differ by.
- *root*: a hash over the whole set, without a key, so that links share it (`tree`).
- *symbol*: one cell of a *sketch*: a count, a sum of short ids, a sum of checks.
- *peeling*: finding ids that stand alone in a symbol, until the difference is known or symbols are lacking.

What never happens here: nothing is trusted because it came out of a sketch. A sketch nominates; sums and record hashes
decide. No work grows with what a peer claims, only with what it sent.
"""
