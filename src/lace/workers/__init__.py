"""Work in other processes: jobs go out over a pipe, answers come back.

- *job*: a value that is pickled to a worker; its `run` gives the answer, which is pickled back.
- *pool*: the near side: one worker, some, or some that start in the background. *Process*: the far side.
- *lending*: threads of this process, for whoever has work; few of them idle.
- *collector*, *allocator*: how often a process of ours looks for cycles, and what it does with freed memory.

Rule: it knows jobs and nothing about what they do. Never: a worker that died gives an answer; a worker imports from the
folder it was started in.
"""
