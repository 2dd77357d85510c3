"""What a source claims to have: advertisements, their partitions and roots, and how a host holds a peer's (050, P16).

`peerclaims` is what a host holds of a peer: claim by claim, or `relative` to our own set. A part is the claims of one
partition (`partclaims`), as objects or as `columns`; `recognition` names parts of a peer without having them listed.
"""
