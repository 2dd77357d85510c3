"""Which schema a store file has, without bringing it up to date.

Rule: the file is opened read-only and nothing in it is written.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from lace.errors import NotFound, StoreError
from lace.store.columns.tables import schema
from lace.values import dataclass


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """The schema of a file, and the one that this version writes."""

    found: int
    current: int

    @property
    def is_old(self) -> bool:
        """Whether it is brought up to date when the file is next opened for writing."""
        return self.found < self.current


def schema_of(path: Path) -> SchemaVersion:
    """The schema of a store file; StoreError if it is not a lace or comes from a newer version."""
    if not path.is_file():
        raise NotFound(f"{path}: there is no lace here")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            found = schema.version_of(connection)
            schema.require_ours(connection, found)
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
    return SchemaVersion(found, len(schema.MIGRATIONS))
