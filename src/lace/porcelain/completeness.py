"""Which content of a store is complete, what the rest lacks, and which parts nothing needs (010, conventions).

Rule: this reads facts and manifests, never the data of parts. A manifest that breaks the convention is left for the
code that reads content.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from lace.errors import IncompleteContent, InvalidRecord
from lace.facts.predicates import FIELD, RECORD_LINK, SELECT_HAVE
from lace.limits import EngineLimits, RecordLimits
from lace.notation.identifiers import RecordHash, is_record_hash
from lace.porcelain.content import CHUNK_FOLDER, Load
from lace.records.manifest import CHUNK_LINK, TOTAL_LENGTH, Piece, is_manifest, manifest_pieces
from lace.records.model import ValidRecord
from lace.store.base import RecordStore
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.policy.operand import Module

MOST_NAMED = 3  # missing parts that a sentence names


@dataclass(frozen=True, slots=True)
class Incomplete:
    """Content of which not all parts are stored here."""

    hash: RecordHash
    coordinate: str
    parts: int  # named by the manifests that are here
    missing: tuple[RecordHash, ...] = field(repr=False)
    missing_bytes: int

    def __str__(self) -> str:
        return f"{self.coordinate} is incomplete: {self.lacks}"

    @property
    def lacks(self) -> str:
        """One line that says what is missing."""
        named = ", ".join(self.missing[:MOST_NAMED])
        more = f" and {len(self.missing) - MOST_NAMED:,} more" if len(self.missing) > MOST_NAMED else ""
        return (
            f"{len(self.missing):,} of {self.parts:,} parts ({self.missing_bytes:,} bytes) are not here: {named}{more}"
        )

    def to_json(self) -> dict[str, object]:
        """What is missing, for programs."""
        return {
            "hash": self.hash,
            "coordinate": self.coordinate,
            "parts": self.parts,
            "missing": list(self.missing),
            "missing_bytes": self.missing_bytes,
        }


def lacking(record: ValidRecord, store: RecordStore, load: Load, limits: RecordLimits) -> Incomplete | None:
    """What a record's content lacks here; None if it is complete, or not cut into parts."""
    if not is_manifest(record):
        return None
    named: dict[RecordHash, int] = {}  # each part once, and how much of the content it is
    missing: dict[RecordHash, int] = {}
    level = [record]
    for _ in range(limits.max_manifest_depth):
        pieces = [piece for manifest in level for piece in _pieces(manifest) if piece.target not in named]
        named.update((piece.target, piece.end - piece.start) for piece in pieces)
        held = store.present([piece.target for piece in pieces])
        missing.update((piece.target, piece.end - piece.start) for piece in pieces if piece.target not in held)
        level = [load(target) for target in sorted(held) if target.type == "P"]
    if not missing:
        return None
    parts = record.parts
    place = f"//{parts.group}//{parts.app}//{parts.name}"
    return Incomplete(record.hash, place, len(named), tuple(missing), sum(missing.values()))


def require_whole(record: ValidRecord, store: RecordStore, load: Load, limits: RecordLimits) -> None:
    """Raise IncompleteContent if anything is missing, before the first byte of the content is handed out."""
    found = lacking(record, store, load, limits)
    if found is not None:
        error = IncompleteContent(str(found), found.hash, found.missing)
        error.add_note("fetch the rest from a peer that has it: `lace get … --from ADDRESS`, or `lace interlace`")
        raise error


def incomplete_content(store: RecordStore, load: Load, limits: RecordLimits) -> Iterator[Incomplete]:
    """All content that lacks parts, by the manifest at its top; nested manifests are covered by the one above them."""
    snapshot = store.snapshot()
    tops = dict.fromkeys(row[0] for row in snapshot.query(FIELD, None, TOTAL_LENGTH))
    if not tops:
        return
    nested = {target for _, _, _, _, target in snapshot.query(RECORD_LINK, None, CHUNK_LINK) if target in tops}
    for name in tops:
        stored = RecordHash(name)
        if (
            name not in nested
            and store.have(stored)
            and (found := lacking(load(stored), store, load, limits)) is not None
        ):
            yield found


def selected_among(
    found: Sequence[Incomplete], module: Module, store: RecordStore, limits: EngineLimits | None = None
) -> list[Incomplete]:
    """Those whose manifest a selector selects without a peer; what depends on who asks is left out."""
    if not found:
        return []
    from lace.datalog.engine import evaluate  # seldom needed, and long to load
    from lace.datalog.language.syntax import Atom, Program, Variable
    from lace.datalog.language.validate import check_program
    from lace.policy.operand import SELECTOR_PROFILE

    limits = limits or EngineLimits()
    program = check_program(Program(module.rules), SELECTOR_PROFILE, limits)
    goal = Atom(SELECT_HAVE, (Variable("P"),))
    result = evaluate(program, [store.snapshot()], goals=[goal], limits=limits)
    chosen = {*result.text_columns(SELECT_HAVE)[0]}
    return [one for one in found if one.hash in chosen]


def unneeded_parts(store: RecordStore, load: Load, removed: Iterable[RecordHash]) -> list[RecordHash]:
    """The parts that only these records need: no record that stays links to them, as a part or otherwise.

    A nested manifest counts as a part if it is where `put` places them; a record with a coordinate of its own does not.
    """
    removed = tuple(removed)
    snapshot = store.snapshot()
    if not any(True for one in removed for _ in snapshot.query(RECORD_LINK, one, CHUNK_LINK)):
        return []  # no content in parts is removed, so nobody's links need be read
    links: dict[str, set[str]] = {}
    parts: dict[str, list[str]] = {}
    for whole, name, _, _, target in snapshot.query(RECORD_LINK):
        if is_record_hash(target):
            links.setdefault(target, set()).add(whole)
            if name == CHUNK_LINK:
                parts.setdefault(whole, []).append(target)
    gone: set[str] = {*removed}
    waiting = [part for record in removed for part in parts.get(record, ())]
    freed: dict[RecordHash, None] = {}
    while waiting:
        part = RecordHash(waiting.pop())
        if part in gone or not links[part] <= gone or not store.have(part) or not _is_only_a_part(part, load):
            continue
        gone.add(part)
        freed[part] = None
        waiting += parts.get(part, ())
    return list(freed)


def unlinked_blobs(store: RecordStore) -> list[RecordHash]:
    """The Blobs that no stored record links to: parts whose manifest is gone or never arrived, or stored on purpose."""
    snapshot = store.snapshot()
    linked = {target for _, _, _, _, target in snapshot.query(RECORD_LINK)}
    return [record for _, record in store.records_since() if record.type == "B" and record not in linked]


def _is_only_a_part(part: RecordHash, load: Load) -> bool:
    if part.type == "B":
        return True
    record = load(part)
    *_, folder, stretch = ("", "", *(record.parts.name or "").split("/"))
    return record.type == "P" and is_manifest(record) and folder == CHUNK_FOLDER and ".." in stretch


def _pieces(manifest: ValidRecord) -> list[Piece]:
    try:
        return manifest_pieces(manifest) if is_manifest(manifest) else []
    except InvalidRecord:
        return []
