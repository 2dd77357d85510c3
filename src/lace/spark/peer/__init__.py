"""An archive that exchanges like any lace (050, 070): a host whose work is done by Spark jobs.

    peer         what all links of an archive share; `host` is one link
    arrivals     where records land, and what is kept of peers
    selecting    what may be sent and requested under agreed rules; `sets` are the results, `claims` what peers say
    aggregates   sums, sketches and roots as one pass over ids
    jobs         each can be given up, has a time limit, and says which files it read

What never happens here: the driver holds ids by the number of the archive's records; a job runs that nobody waits for.
"""
