"""One epoch's loops: advertise by one of four ways, request, transfer (050, 070, 071).

`rounds` decides which loop or transfer comes next, `loop` which way is taken; `listed`, `partitioned` and `compared`
are the ways, `transfer` moves the records. `epoch` knows what outlives a loop.
"""
