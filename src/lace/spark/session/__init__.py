"""A Spark session: its Java, its master, its settings, tags on its jobs, and how its failures are told.

What never happens here: a user waits for minutes at a master that does not answer; Spark's own account of a failure is
the first thing that a user reads.
"""
