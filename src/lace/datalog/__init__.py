"""030: the rule language, from text to derived facts.

`language` reads and checks rules, `planning` turns them into plans, `engine` runs plans in this process, `explain` says
why a fact holds or does not. Spark runs the same plans (`lace.spark.engine`).

The words of this floor:

- **lacegram**: the text of a program, in canonical form if it has an identifier.
- **predicate**, **atom**, **literal**, **rule**, **program**: as in every Datalog; `language.syntax` has the tree.
- **base fact**, **derived fact**: given by a source; given by a rule.
- **runtime fact**: a base fact that no record holds, such as who asks.
- **goal**: an atom that says which derived facts somebody wants.
- **demand**: what a program has to derive for a goal (magic sets).
- **stratum**: predicates that are completed together, after those that they negate or count.
- **ranked** predicate: an ordering that is only counted, so a position in a sorted list stands for its facts (P31).
- **plan**: one chain of scans, joins and tests for a rule; every executor runs it.
- **source**: a fixed snapshot of base facts, by rows or by columns.
- **meter**: counts rows of work (P36), and stops an evaluation that exceeds a limit.

What never happens here: I/O, a clock other than for the figures of a report, an answer that depends on the order of
rules or facts, a program that was not checked.
"""
