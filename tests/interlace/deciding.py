"""Record ids for tests of single parts of a machine, and why one of them aborts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lace.interlace.reasons import ProtocolAbort
from lace.notation.digest import digest
from lace.notation.identifiers import RecordHash

SOURCE = "Opq_s"
ROOT = "0" * 43


def record(number: int) -> RecordHash:
    return RecordHash.of("B", digest(str(number).encode()))


RECORDS = sorted(record(number) for number in range(40))


def refuse(*_: object, **__: object) -> None:
    raise AssertionError("this need not be asked")


def reason_of(ask: Callable[[], object]) -> str:
    """The detail of an abort."""
    with pytest.raises(ProtocolAbort) as caught:
        ask()
    return str(caught.value.detail)
