"""Withdrawing what was put, and taking that back (081).

Rule: a retraction is one more record. Nothing is removed, and nobody else learns of it before an exchange carries it,
by the rules that carried what it withdraws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from lace.errors import InvalidInput, NotFound
from lace.notation.identifiers import RecordHash
from lace.porcelain.tips import who_and_when
from lace.records.coordinate import Coordinate, is_place, parse_coordinate
from lace.records.model import Header
from lace.records.retraction import retract_all, retract_versions
from lace.records.tip import EVERYBODYS, JudgedVersion, VersionState
from lace.store.base import Entry

if TYPE_CHECKING:
    from lace.porcelain.lace import Lace
    from lace.records.keys import Signer

Version = JudgedVersion[Entry]
Time = str | Callable[[Entry | None], str]
"""The time of a record: given, or made from the newest version at its coordinate."""
Retracting = tuple[Coordinate, tuple[Header, ...]]
"""A record to write: where, and the headers that say what it withdraws."""


def retract(lace: Lace, targets: Iterable[str], sign: Signer | str | None, time: Time) -> Sequence[RecordHash]:
    """Withdraw coordinates and single versions; the hashes of the records that say so."""
    return _write(lace, [_retraction(lace, target) for target in targets], sign, time)


def undo(lace: Lace, targets: Iterable[str], sign: Signer | str | None, time: Time) -> Sequence[RecordHash]:
    """Withdraw retractions; the hashes of the records that say so."""
    return _write(lace, [_taken_back(lace, target) for target in targets], sign, time)


def _write(lace: Lace, wanted: Sequence[Retracting], sign: Signer | str | None, time: Time) -> Sequence[RecordHash]:
    merged: dict[Coordinate, dict[Header, None]] = {}
    for where, headers in wanted:
        merged.setdefault(where, {}).update(dict.fromkeys(headers))
    with lace.batch() as batch:
        written = [
            batch.put(
                b"",
                group=where.group,
                app=where.app,
                name=where.name,
                tai=time if isinstance(time, str) else time(_newest(lace, where)),
                headers=sorted(headers, key=lambda header: header[0]),
                sign=sign,
            )
            for where, headers in merged.items()
        ]
    refused = [where for where, record in zip(merged, written, strict=True) if _is_idle(lace, where, record)]
    if refused:
        lace.store.delete(*written)
        message = "the policy of this lace does not let this signer withdraw it: `lace policy show` says who may"
        raise InvalidInput(message, rule="retract-policy", place=str(refused[0]))
    return written


def _is_idle(lace: Lace, where: Coordinate, record: RecordHash) -> bool:
    """Whether the policy keeps a retraction from withdrawing anything."""
    versions = list(lace.history(where))
    mine = next(found for found in versions if found.version.hash == record)
    if mine.state is VersionState.BARRED:
        return True
    is_limited = lace.tip_policy().reach(mine.version) != EVERYBODYS
    return is_limited and all(found.by is None or found.by.hash != record for found in versions)


def _newest(lace: Lace, where: Coordinate) -> Entry | None:
    """The newest version that counts: a retraction withdraws only what is older than itself."""
    return next(
        (
            found.version
            for found in lace.history(where)
            if found.state not in (VersionState.AHEAD, VersionState.BARRED)
        ),
        None,
    )


def _retraction(lace: Lace, target: str) -> Retracting:
    if is_place(target) and (where := parse_coordinate(target)).version is None:
        lace.tip(where)  # or it says that there is none, and why
        return where, retract_all()
    where, found = _version(lace, target)
    if found.by is not None:
        message = f"{found.version.hash} is withdrawn already, by {who_and_when(found.by)}"
        raise InvalidInput(message, rule="retract", place=str(where))
    return where, retract_versions([found.version.hash])


def _taken_back(lace: Lace, target: str) -> Retracting:
    if is_place(target) and (where := parse_coordinate(target)).version is None:
        found = _first(lace, where, lambda one: one.state is VersionState.RETRACTS)
        if found is None:
            raise NotFound(f"nothing is withdrawn at {where}, so there is nothing to take back")
        return where, retract_versions([found.version.hash])
    where, found = _version(lace, target)
    if found.state is not VersionState.RETRACTS:
        message = "this record withdraws nothing" if not found.version.withdraws else "this retraction does not count"
        raise InvalidInput(f"{found.version.hash}: {message}, so there is nothing to take back", rule="undo")
    return where, retract_versions([found.version.hash])


def _version(lace: Lace, target: str) -> tuple[Coordinate, Version]:
    """A stored version by its hash, and its coordinate."""
    record = lace.record(target)
    if record.type == "B":
        raise InvalidInput(f"{record.hash} is a Blob, which has no coordinate to withdraw it from", rule="retract")
    parts = record.parts
    where = Coordinate(group=parts.group, app=parts.app, name=parts.name)
    found = _first(lace, where, lambda one: one.version.hash == record.hash)
    assert found is not None
    return where, found


def _first(
    lace: Lace, where: Coordinate, wanted: Callable[[JudgedVersion[Entry]], bool]
) -> JudgedVersion[Entry] | None:
    return next((found for found in lace.history(where) if wanted(found)), None)
