"""From checked rules to plans (030): strata, join orders, and the rewritings that come before them.

Rewritings, in the order in which they run: `existence` (whether something stands beyond becomes a count), `ranking` (a
count of an ordering becomes a rank), `demand` with `adornment` and `factoring` (only what goals need), `unfold` (fewer
steps on Spark). `stratify` orders predicates, `planner` makes a `plan` of each rule; `names` names what is made.

What never happens here: a fact is read (sizes are asked for), or a predicate of the author changes its meaning.
"""
