"""How two sides come to an agreement (050): terms and setup, hello, and what both come to.

`terms` is what our side brings, `setup` and `hello` are the two blocks, `negotiation` the phases in which they cross,
and `agreement` is the outcome that an epoch rests on.
"""
