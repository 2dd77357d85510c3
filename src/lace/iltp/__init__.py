"""ILTP (060): an exchange as a byte stream. Items in, bytes out, and the other way round.

Words of this package:

- *item*: what a reader yields: fact lines, the end of a block, a resource, a record.
- *marker*: the bytes at which an item that is not a fact line begins (`markers`).
- *resource*: a text with an identifier, such as the rules of an operand.
- *packed*: several fact lines as one deflated item (070).
- *address*: where to find a peer, and by which transport.

What never happens here: nothing knows phases, peers or stores. A reader never holds more than its limits allow and
never decides whether an item may come now.
"""
