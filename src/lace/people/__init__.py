"""People: who founded a group, who is an admin or a member, and which policy holds (docs/spec/080-people.md).

Words of this package:

- *group*: the Group whose records a policy rules. Everything here is about one group of one lace.
- *root*: the group and the verifier of its founder, pinned in the settings of the lace that was made or that joined.
- *people records*: ordinary Seals under `//G//admin`, `member`, `device`, `invite`, `left`, `successor` and `policy`.
- *core rules*: the rules under `rules/`, which say who is an admin and who is a member, from people records alone. The
  selectors of a policy include the same text.
- *in force*: signed by who may sign it, and not replaced by a newer one.

What never happens here: nothing is added to the wire, nobody is trusted for holding a record or for sending it, and the
content of a record is never read to decide who may do something.
"""
