"""What jobs compute: functions from frames to frames, named by what comes out, for archives and for notebooks.

What never happens here: a table is written, a step is remembered, an order of steps is known.
"""
