"""One link: a byte stream on one side, a host on the other, and what is under way between them.

The words of this floor:

- **session**: a machine that speaks bytes (`session`); its **outbox** is what nobody has taken yet.
- **request**: something a session wants done; the machine's effects, records that came, rules to be read.
- **host**: our own side of the link, which answers requests (`interlace.host`).
- **now**: without waiting. A call that may not wait is answered, or NOT_NOW (decision 380).
- **stepper**: carries out requests in order for as long as that is possible now, and hands out jobs for the rest
  (`stepper`, decision 381).
- **job**: something that may block, and where its result goes.
- **batch**: records that are judged and committed together; the **intake** holds them.
- **service**: one listing or transfer on its way out, as fast as the peer takes it.
- **runner**: does the jobs of a stepper. `drive` on an event loop, with threads; `synchronous` in the caller's thread.
- **turn**: a piece of work on the event loop, among those of other links (`turns`).
- **account**: what the peer causes is charged to it; a link that is overdrawn waits (`account`).
- **backlog**: what was received and not yet processed; past its bounds the peer is not read from (`backlog`).
- **hang-up**: the peer has gone and has left bytes behind (`hangup`).

What never happens here: nothing decides what may be sent or requested, nothing reads a store or evaluates a rule
except through the host, and nothing blocks the event loop.
"""
