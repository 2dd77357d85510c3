"""Bundles as a Spark data source: read, streamed and written.

    files        bundles and stores cut into pieces that begin and end at a record
    judging, rows, schemas   records judged in groups and turned into columns
    source, stream, writer   the format `lace`

What never happens here: a row is lost (what is no record says which rule it breaks); a filter is taken from Spark.
"""
