"""The verbs of a developer (110): `lace.open` and the `Lace` it returns, queries, exchanges and nodes.

The words of this floor:

    lace        one store with its verbs; the object behind `lace.open`
    coordinate  //group//app//name: where content is stored; many records can share it
    tip         the record that a coordinate names: the newest that is not dated too far ahead
    version     any record of a coordinate; versions of several writers are concurrent
    content     what a record holds, of any size; above the limit of one record a manifest links to its chunks
    incomplete  content that lacks chunks here; not damage
    prefix      the beginning of a coordinate; covers every record below it
    cursor      a position in the history of a store, as text; changes are read from there on
    selector    rules that say which records a side wants to share; `None` is everything
    exposure    rules that say what a peer's rules may see; `"none"` is the default
    gate        one condition on a record's way to a peer; `why` walks them in order
    preview     a real exchange with a peer in which no records move
    view        derived facts that follow their source: `lace.follow_rules`

What never happens here: nothing prints, nothing decides what an exchange does (`runtime` and `interlace` do), and no
verb commands the other side: a remote verb contributes a selector and exchanges.
"""
