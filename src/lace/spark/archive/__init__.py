"""An archive: tables of records under one address, grown by batches, each change one commit of a numbered log.

Rule: data files are never changed after they are written; what an archive holds is what its newest commit says.

    log            commits and the state that they add up to; `filesystem` is where they lie
    archive        open, add, remove, compact, look up: a change is worked out and committed
    executors      who carries a step out; `in_process` and `on_spark` are the two
    run            what each peer may have, its listing and its roots, brought up to the newest batch
    additive       which rules may look at new batches by themselves
    maintain       rules that look at several records: stored relations follow what changes (`changes`)
    peer_records   the records that a peer may have, asked of the rows themselves where rules allow it
    publish, report, retention, follow, find   what the commands of these names do
    tables         columns, order and form of the files; `rewrite` writes files without some rows or together
    delta, reading   the same tables for other engines, and for `USING lace`

What never happens here: two writers get one version; a reader sees half a change; a step is carried out by one executor
and comes to other rows than the other would.
"""
