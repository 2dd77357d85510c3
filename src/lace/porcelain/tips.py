"""Which record a coordinate means, when several stand there (110; docs/threat-model.md, who may move a tip).

Rule: the newest, but a record does not displace one that is signed by a key this lace knows unless it is signed by such
a key too; and a record dated beyond the horizon is never a tip. What was passed over is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lace.limits import HORIZON_S, SECOND_NS
from lace.notation.identifiers import Verifier
from lace.notation.tai import TAI
from lace.store.base import Entry, RecordStore
from lace.values import dataclass

KNOWN_KEYS = "known-key"  # the settings namespace


@dataclass(frozen=True, slots=True)
class Tip:
    """The record that a coordinate means, and the newer ones that it does not mean."""

    entry: Entry
    passed_over: Sequence[Entry] = ()

    def notice(self) -> str:
        """What somebody should know who takes it for the newest; empty if it is."""
        if not self.passed_over:
            return ""
        count = len(self.passed_over)
        newer = "1 newer record stands" if count == 1 else f"{count:,} newer records stand"
        return f"{newer} here, dated too far ahead or not signed by a key that this lace knows; `lace ls` shows them"


class TipPolicy:
    """Chooses among the versions of a coordinate."""

    def __init__(
        self, known: Callable[[], Iterable[str]], now: Callable[[], TAI], horizon_s: int | None = HORIZON_S
    ) -> None:
        self._known = known
        self._now = now
        self._horizon_s = horizon_s
        self._keys: frozenset[str] | None = None

    def choose(self, versions: Sequence[Entry]) -> Tip | None:
        """The tip of versions that stand oldest first; None if there are none, or none is old enough."""
        present = self._dated(versions)
        if not present:
            return None
        chosen = present[-1]
        if len(present) > 1 and any(entry.signer for entry in present):
            keys = self._known_keys()
            chosen = next((entry for entry in reversed(present) if entry.signer in keys), chosen)
        return Tip(chosen, tuple(versions[versions.index(chosen) + 1 :]))

    def bounds(self) -> tuple[frozenset[str], TAI | None]:
        """The known keys, and the instant behind which nothing is a tip.

        Who has too many versions to hand them all to `choose` looks for the newest before that instant, and for the
        newest before it that one of these keys signed: among the two is the tip.
        """
        return self._known_keys(), self._horizon()

    def _horizon(self) -> TAI | None:
        return None if self._horizon_s is None else self._now().plus_ns(self._horizon_s * SECOND_NS)

    def _dated(self, versions: Sequence[Entry]) -> Sequence[Entry]:
        horizon = self._horizon() if versions else None
        if horizon is None or TAI.parse(versions[-1].tai) <= horizon:
            return versions
        return [entry for entry in versions if TAI.parse(entry.tai) <= horizon]

    def _known_keys(self) -> frozenset[str]:
        if self._keys is None:
            self._keys = frozenset(self._known())
        return self._keys

    def forget(self) -> None:
        """The known keys may be others now."""
        self._keys = None


def known_keys(store: RecordStore) -> list[Verifier]:
    """The keys that a lace knows: those it was signed with here, and those it was told of."""
    return [Verifier(name) for name in store.settings(KNOWN_KEYS)]


def know_key(store: RecordStore, verifier: Verifier) -> None:
    """Remember a key; knowing it again is nothing."""
    if store.get_setting(KNOWN_KEYS, verifier) is None:
        store.put_setting(KNOWN_KEYS, verifier, b"")


def forget_key(store: RecordStore, verifier: Verifier) -> bool:
    """Forget a key; whether it was known."""
    was_known = store.get_setting(KNOWN_KEYS, verifier) is not None
    if was_known:
        store.put_setting(KNOWN_KEYS, verifier, None)
    return was_known
