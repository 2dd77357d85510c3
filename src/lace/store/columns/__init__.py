"""The column database: records in one SQLite file, their facts as columns of codes (docs/store.md explains it).

- *store*: the `RecordStore` over one file. Everything else here is a part of it.
- *file*: the file on the disk: how it is opened, who has it open, its transactions, its log, room kept on the disk.
- *tables*: what the file holds: bodies, coordinates, settings, the row of counters, the schema, the checksums.
- *dictionary*: every value of a fact once, as a text with a code. A *key* is a keyed hash of a text, under which the
  index finds its code. A *run* is keys in order, written once.
- *segments*: the facts of some records as columns of codes. A *group* is the rows of one kind or one field name; an
  encoded *batch* is a segment under codes of its own, made before any store is touched; a *view* shows them as facts.
- *tombstone*: a deleted record whose facts are still in a segment. *Removal*: the facts of a deletion, for followers.
- *generation*: what codes mean; a file that was rebuilt has another.
- *repair*: the integrity check, salvage from a damaged file, backup, restore, compaction.

Rule: what comes out of the file has a checksum, and it is compared where it is read. Never: a record that was not
judged is stored; something is acknowledged before it is durable; a code changes its meaning within a generation.
"""
