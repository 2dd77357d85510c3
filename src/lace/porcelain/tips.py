"""The tip of a coordinate in a lace, what else is there, and notices about it (110; docs/concepts.md, tips).

Rule: `lace.records.tip` decides; this module reads versions for it and words the answer. The keys that a lace knows are
a hint for people who read the answer, and do not change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice

from lace.notation.identifiers import Verifier
from lace.records.coordinate import VersionChoice
from lace.records.tip import LOOKED_AT, JudgedVersion, TipPolicy, VersionState, judged, newest_by_writer, standing
from lace.store.base import Entry, RecordStore
from lace.values import dataclass

KNOWN_KEYS = "known-key"  # the settings namespace
_NAMED = 4  # versions that a sentence names; it counts the rest


@dataclass(frozen=True, slots=True)
class Tip:
    """The record that a coordinate names, and what else a reader should know."""

    entry: Entry
    concurrent: tuple[Entry, ...] = ()  # the newest version of each other writer, newest first
    passed_over: tuple[Entry, ...] = ()  # newer versions dated too far ahead, newest first; LOOKED_AT at most
    barred: tuple[
        Entry, ...
    ] = ()  # newer versions by somebody who may not write there, newest first; LOOKED_AT at most
    retractions: tuple[Entry, ...] = ()  # what withdrew newer versions; LOOKED_AT at most

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
        if self.barred:
            count = len(self.barred)
            newer = "1 newer version does" if count == 1 else f"{count:,} newer versions do"
            yield f"{newer} not count, because the policy lets others write here: by {listed(self.barred, told)}"
        if self.retractions:
            yield f"versions newer than this one were withdrawn: by {listed(self.retractions, told)}"


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
    return next(_readable(versions, policy, choice), None)


def describe_tip(
    versions: Versions, policy: TipPolicy, choice: VersionChoice | None = None, *, within: int = LOOKED_AT
) -> Tip | None:
    """The tip with what is concurrent with it and newer than it, each searched for among `within` versions."""
    tip = find_tip(versions, policy, choice)
    if tip is None:
        return None
    newer: dict[VersionState, list[Entry]] = {state: [] for state in VersionState}
    retractions: dict[str, Entry] = {}
    if choice is None or choice.tai is None:
        for found in islice(judged(versions(None), policy), within):
            if found.version.hash == tip.hash:
                break
            if choice is not None and not _is_chosen(found.version, choice):
                continue
            newer[found.state].append(found.version)
            # An undone retraction was a version too, but nobody misses what it said.
            if found.by is not None and not found.version.withdraws:
                retractions.setdefault(found.by.hash, found.by)
    _, *concurrent = newest_by_writer(chain([tip], _readable(versions, policy, choice, within)))
    ahead, barred = newer[VersionState.AHEAD], newer[VersionState.BARRED]
    return Tip(tip, tuple(concurrent), tuple(ahead), tuple(barred), tuple(retractions.values()))


def withdrawal(versions: Versions, policy: TipPolicy) -> Entry | None:
    """The newest retraction that counts at a coordinate; None if nothing of it is withdrawn."""
    return next((found.version for found in judged(versions(policy.until), policy) if is_retraction(found)), None)


def is_retraction(found: JudgedVersion[Entry]) -> bool:
    """Whether a version withdraws others, and is not withdrawn itself."""
    return found.state is VersionState.RETRACTS


def _readable(
    versions: Versions, policy: TipPolicy, choice: VersionChoice | None, within: int | None = None
) -> Iterator[Entry]:
    """The versions that may be the tip, newest first, of those that a version selector admits.

    A selector that names a moment or a hash means that version, however it is dated and even if it is withdrawn.
    """
    if choice is not None and choice.tai is not None:
        return (entry for entry in versions(None) if _is_chosen(entry, choice))
    found = standing(islice(filter(policy.admits, versions(policy.until)), within), policy)
    return found if choice is None else (entry for entry in found if _is_chosen(entry, choice))


def _is_chosen(entry: Entry, choice: VersionChoice) -> bool:
    return choice.admits(entry.hash, entry.tai, entry.signer)


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
