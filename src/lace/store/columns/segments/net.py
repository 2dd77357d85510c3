"""What changed between two cursors, when records came and went several times in between (020)."""

from __future__ import annotations

from collections.abc import Sequence

from lace.facts.predicates import HAVE
from lace.notation.identifiers import RecordHash
from lace.store.base import Changes, StoreCursor
from lace.store.columns.file.state import StoreState
from lace.store.columns.segments.segments import Segment, without
from lace.store.columns.segments.view import SegmentView, TextCodes


def net_changes(
    dictionary: TextCodes, state: StoreState, since: StoreCursor, added: Sequence[Segment], removed: Sequence[Segment]
) -> Changes:
    """A record that came and went in between never was; one that went and came again never left."""
    came = {code for segment in added for code in segment.subjects}
    went: set[int] = set()
    for segment in removed:
        pairs = zip(segment.ids, segment.subjects, strict=True)
        went.update(code for record, code in pairs if record <= since.record)
    both = came & went
    kept_added = [without(segment, both) for segment in added]
    kept_removed = _first_removals(removed, went - both, since)
    views = [SegmentView(dictionary, state.next_code, part, state.cursor) for part in (kept_added, kept_removed)]
    hashes = [tuple(map(RecordHash, view.texts(view.columns(HAVE)[0]))) for view in views]
    return Changes(views[0], views[1], hashes[0], hashes[1], state.cursor)


def _first_removals(removed: Sequence[Segment], wanted: set[int], since: StoreCursor) -> list[Segment]:
    """The removed records that the cursor had seen, each once."""
    kept = []
    for segment in removed:
        pairs = zip(segment.ids, segment.subjects, strict=True)
        unseen = {code for record, code in pairs if record > since.record or code not in wanted}
        kept.append(without(segment, unseen))
    return kept
