"""Rows of an archive as the facts of their records, for the embedded engine (020).

Rule: the facts of a row are those that `lace.facts.derive` gives for its record; a test compares them. They are made
column by column, which takes a fraction of reading each record's bytes again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from lace.datalog.engine import RowSource
from lace.datalog.language.syntax import Predicate
from lace.datalog.source import Row
from lace.facts.predicates import BLOB_HASH, FIELD, HAVE, PLEX_HASH, RECORD_LINK
from lace.spark.source.schemas import SINGLETON_COLUMNS

FACT_COLUMNS = ("hash", *SINGLETON_COLUMNS.values(), "headers", "links", "blob_hash", "plex_hash")


def facts_of_rows(groups: Iterable[pa.RecordBatch]) -> RowSource:
    """The facts of some rows of `records`, each record once."""
    found: dict[Predicate, list[Row]] = {}
    for rows in groups:
        columns = {name: rows[name].to_pylist() for name in FACT_COLUMNS}
        for predicate, of_predicate in _READERS.items():
            found.setdefault(predicate, []).extend(of_predicate(columns))
    source = RowSource()
    for predicate, all_rows in found.items():
        source.add(predicate, all_rows)
    return source


_Columns = dict[str, list[Any]]


def _have(columns: _Columns) -> Iterator[Row]:
    return zip(columns["hash"])


def _fields(columns: _Columns) -> Iterator[Row]:
    hashes = columns["hash"]
    for field, name in SINGLETON_COLUMNS.items():
        for record, value in zip(hashes, columns[name], strict=True):
            if value is not None:
                yield record, field, "0", str(value)
    for record, headers in zip(hashes, columns["headers"], strict=True):
        for field, values in headers or ():
            for place, value in enumerate(values):
                yield record, field, str(place), value


def _links(columns: _Columns) -> Iterator[Row]:
    for record, links in zip(columns["hash"], columns["links"], strict=True):
        for link in links or ():
            yield record, link["name"], str(link["index"]), link["data"], link["target"]


def _inner(name: str, columns: _Columns) -> Iterator[Row]:
    return (pair for pair in zip(columns["hash"], columns[name], strict=True) if pair[1] is not None)


_READERS: dict[Predicate, Callable[[_Columns], Iterator[Row]]] = {
    HAVE: _have,
    FIELD: _fields,
    RECORD_LINK: _links,
    BLOB_HASH: partial(_inner, "blob_hash"),
    PLEX_HASH: partial(_inner, "plex_hash"),
}
