"""Work in other processes: jobs go out over a pipe, answers come back.

Rule: it knows jobs and nothing of what they do. `pool` is this side, `process` the other.
"""
