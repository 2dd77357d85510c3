"""040: operands, exposure, exchange plans, and the one flat program that a side evaluates.

Words of this package:

- *module*: rules in canonical form, with an id `R.`; as a side's contribution to an exchange it is an *operand*.
- *selector*: an operand that says what to have (`SelectHave`) and what to ask for (`SelectAdvertised`).
- *exposure*: what the peer's rules may see of our records; the *view* is what they then see.
- *origin*, *viewer*, *source*: who brought rules, who looks, and under which label claims are made: three types.
- *plan*: two operands compiled, with an id `E.` that both sides must agree on.
- *lowering*: from a plan to the flat program of one side, with the *gates* `Sendable` and `Requestable` on top.
- *lint*: what is probably not meant, though it is allowed.

What never happens here: no rule is evaluated, and no rule of a peer reads more than its view.
"""
