"""The column database: records in one SQLite file, their facts as columns of codes (docs/store.md explains it).

From the outside in: `store` is the RecordStore; `file` the connection and its transactions; `bodies`, `history` (with
`segments` and `packing`), `symbols` and `coordinates` each own some of the tables in `schema`; `encode` makes batches
of columns before any store is touched; `view` shows them as facts; `inspection`, `salvage` and `upkeep` look after a
file.

Rule: what comes out of the file has a checksum, and it is compared where it is read.
"""
