"""Opening a lace.

Rule: a path that is not there is created only when asked; `:memory:` is a lace that lives as long as its object.
"""

from __future__ import annotations

import os
from pathlib import Path

from lace.limits import HORIZON_S, RecordLimits
from lace.porcelain.lace import Lace
from lace.records.keys import SigningKey
from lace.runtime.clock import Clock
from lace.runtime.identity.keyring import KeyRing
from lace.store import MemoryStore, open_store

IN_MEMORY = ":memory:"


def generate_key() -> SigningKey:
    """A fresh signing key that lives in memory only; `KeyRing.add` keeps one."""
    return SigningKey.generate()


def open_lace(
    path: str | os.PathLike[str],
    create: bool = False,
    *,
    read_only: bool = False,
    clock: Clock | None = None,
    keys: KeyRing | None = None,
    limits: RecordLimits | None = None,
    horizon_s: int | None = HORIZON_S,
) -> Lace:
    """The lace at a path; use it in a `with`, or close it. No record dated later than `horizon_s` from now is a tip."""
    if os.fspath(path) == IN_MEMORY:
        return Lace(MemoryStore(), clock=clock, keys=keys, limits=limits, horizon_s=horizon_s)
    store = open_store(Path(path), create=create, read_only=read_only)
    return Lace(store, clock=clock, keys=keys, limits=limits, horizon_s=horizon_s)
