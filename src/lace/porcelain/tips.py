"""The tip of a coordinate in a lace, what else is there, and notices about it (110; docs/concepts.md, tips).

Rule: `lace.records.tip` decides; this module reads versions for it and words the answer. The keys that a lace knows are
a hint for people who read the answer, and do not change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, takewhile

from lace.notation.identifiers import Verifier
from lace.records.coordinate import VersionChoice
from lace.records.tip import LOOKED_AT, TipPolicy, choose_tip, newest_by_writer, tip_order
from lace.store.base import Entry, RecordStore
from lace.values import dataclass

KNOWN_KEYS = "known-key"  # the settings namespace
_NAMED = 4  # versions that a sentence names; it counts the rest


@dataclass(frozen=True, slots=True)
class Tip:
    """The record that a coordinate names, and what else a reader should know."""

    entry: Entry
    concurrent: tuple[Entry, ...] = ()  # the newest version of each other writer, newest first
    passed_over: tuple[Entry, ...] = ()  # newer versions that may not be the tip, newest first; LOOKED_AT at most

    def notices(self, told: Callable[[Entry], str] | None = None) -> Iterator[str]:
        """One sentence for each thing to know; none if there is one writer and nothing was passed over."""
        told = told or who_and_when
        if self.concurrent:
            count = len(self.concurrent) + 1
            said = f"{count:,} writers have written here; this is the newest version, by {told(self.entry)}"
            yield f"{said}; also by {listed(self.concurrent, told)}"
        if self.passed_over:
            count = len(self.passed_over)
            newer = "1 version is" if count == 1 else f"{count:,} versions are"
            yield f"{newer} dated too far ahead to be the tip: by {listed(self.passed_over, told)}"


def writer_of(entry: Entry) -> str:
    """Who wrote a version: its signer, or `unsigned`."""
    return entry.signer or "unsigned"


def who_and_when(entry: Entry) -> str:
    """Who wrote a version, and its time."""
    return f"{writer_of(entry)} ({entry.tai})"


def listed(entries: Sequence[Entry], told: Callable[[Entry], str], named: int = _NAMED) -> str:
    """The first few versions as text, and how many more there are."""
    more = len(entries) - named
    return ", ".join(map(told, entries[:named])) + (f" and {more:,} more" if more > 0 else "")


Versions = Callable[[str | None], Iterable[Entry]]
"""Returns the versions of a coordinate, newest first, up to a moment."""


def find_tip(versions: Versions, policy: TipPolicy, choice: VersionChoice | None = None) -> Entry | None:
    """The tip among the versions that a version selector admits; None if there is none."""
    policy = _policy_for(policy, choice)
    return choose_tip(_chosen(versions(policy.until), choice), policy)


def describe_tip(
    versions: Versions, policy: TipPolicy, choice: VersionChoice | None = None, *, within: int = LOOKED_AT
) -> Tip | None:
    """The tip with its concurrent and passed-over versions, each searched for among `within` versions."""
    policy = _policy_for(policy, choice)
    looked_at = list(islice(filter(policy.admits, _chosen(versions(policy.until), choice)), within))
    tip = choose_tip(looked_at, policy)
    if tip is None:
        return None
    newer = takewhile(lambda entry: tip_order(entry) > tip_order(tip), _chosen(versions(None), choice))
    _, *concurrent = newest_by_writer(looked_at, policy, within)
    return Tip(tip, tuple(concurrent), tuple(islice(newer, within)))


def _policy_for(policy: TipPolicy, choice: VersionChoice | None) -> TipPolicy:
    """A selector that names a moment or a hash means that version, however it is dated."""
    return TipPolicy() if choice is not None and choice.tai is not None else policy


def _chosen(versions: Iterable[Entry], choice: VersionChoice | None) -> Iterable[Entry]:
    if choice is None:
        return versions
    return (entry for entry in versions if choice.admits(entry.hash, entry.tai, entry.signer))


def known_keys(store: RecordStore) -> list[Verifier]:
    """The keys that a lace knows: those that signed here, and those added by hand."""
    return [Verifier(name) for name in store.settings(KNOWN_KEYS)]


def know_key(store: RecordStore, verifier: Verifier) -> None:
    """Remember a key; does nothing if it is known."""
    if store.get_setting(KNOWN_KEYS, verifier) is None:
        store.put_setting(KNOWN_KEYS, verifier, b"")


def forget_key(store: RecordStore, verifier: Verifier) -> bool:
    """Forget a key; return whether it was known."""
    was_known = store.get_setting(KNOWN_KEYS, verifier) is not None
    if was_known:
        store.put_setting(KNOWN_KEYS, verifier, None)
    return was_known
