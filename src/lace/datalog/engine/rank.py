"""Counting by sorting (030-CARD-12, P31): how many candidates stand beyond each candidate.

Rule: the number is exactly the count of the facts that the ordering rules would derive; see `lace.datalog.ranking`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lace.datalog.engine.index import Codes
from lace.datalog.engine.runs import Run
from lace.datalog.engine.sorting import numbered, sorted_unique
from lace.datalog.engine.verdicts import Ranks, Verdicts, distinct_codes
from lace.datalog.plan import Rank
from lace.datalog.ranking import ID, KEY

Counts = npt.NDArray[np.int64]


def ranked_counts(rank: Rank, views: Sequence[Run], verdicts: Verdicts, domain: int) -> Counts | None:
    """For each code the number of facts counted for it; None where a candidate stands in several groups."""
    place_of = {name: position for position, name in rank.candidates.variables}
    counts = np.zeros(domain, np.int64)

    def column(name: str) -> Codes:
        return np.concatenate([np.empty(0, np.uint32), *(view.column(place_of[name]) for view in views)])

    ids = column(ID)
    keys = _key_ranks(column(KEY) if KEY in place_of else ids, rank.kind, verdicts, domain)
    if rank.operator in ("<", "<="):
        keys = np.where(keys >= 0, keys.max(initial=0) - keys, -1)  # beyond is always the greater side
    usable = keys >= 0
    groups = _group_numbers([column(name) for name in rank.groups], len(ids))
    ids, keys, groups = ids[usable], keys[usable], groups[usable]
    if not len(ids):
        return counts
    extremes = _extremes(ids, keys, groups)
    if extremes is None:
        return None
    ids, groups, most, least = extremes
    ties = _tie_ranks(rank, ids, most, least, verdicts)
    strict = (rank.tie_operator if rank.tie_kind else rank.operator) in ("<", ">")
    counts[ids] = _beyond(groups, (most, ties), (least, ties), "right" if strict else "left")
    if rank.others_only:
        counts[ids] -= (most > least) if strict else 1
    return counts


def _key_ranks(column: Codes, kind: str, verdicts: Verdicts, domain: int) -> Ranks:
    codes = distinct_codes(column, domain)
    return verdicts.ranks(codes, kind)[np.searchsorted(codes, column)] if len(codes) else np.empty(0, np.int64)


def _group_numbers(columns: Sequence[Codes], rows: int) -> Ranks:
    numbers = np.zeros(rows, np.int64)
    for column in columns:
        pairs = (numbers.astype(np.uint64) << np.uint64(32)) | column
        numbers = numbered(pairs)[1]
    return numbers


def _extremes(ids: Codes, keys: Ranks, groups: Ranks) -> tuple[Codes, Ranks, Ranks, Ranks] | None:
    """Each id once, with its group, greatest and least key; None if an id has two groups."""
    order = np.lexsort((keys, ids))
    ids, keys, groups = ids[order], keys[order], groups[order]
    first = np.concatenate([[True], ids[1:] != ids[:-1]])
    if bool((~first[1:] & (groups[1:] != groups[:-1])).any()):
        return None
    starts = np.flatnonzero(first)
    ends = np.concatenate([starts[1:], [len(ids)]]) - 1
    return ids[starts], groups[starts], keys[ends], keys[starts]


def _tie_ranks(rank: Rank, ids: Codes, most: Ranks, least: Ranks, verdicts: Verdicts) -> Ranks:
    """Ranks of the identities that share a key with another one; the others never need theirs."""
    ties = np.zeros(len(ids), np.int64)
    if not rank.tie_kind:
        return ties
    used = np.bincount(most) + np.bincount(least[least != most], minlength=int(most.max()) + 1)
    tied = np.flatnonzero((used[most] > 1) | (used[least] > 1))
    if len(tied):
        order = verdicts.ranks(ids[tied], rank.tie_kind)
        ties[tied] = order if rank.tie_operator in (">", ">=") else len(tied) - order
    return ties


def _beyond(groups: Ranks, entries: tuple[Ranks, Ranks], probes: tuple[Ranks, Ranks], side: str) -> Counts:
    """How many entries of its own group stand beyond each probe."""
    entry, probe = _dense_pairs(entries, probes)
    width = int(max(entry.max(), probe.max())) + 1
    ordered = np.sort(groups * width + entry)
    ends = np.searchsorted(ordered, (groups + 1) * width, "left")
    return ends - np.searchsorted(ordered, groups * width + probe, "right" if side == "right" else "left")


def _dense_pairs(entries: tuple[Ranks, Ranks], probes: tuple[Ranks, Ranks]) -> tuple[Ranks, Ranks]:
    """Pairs (key, tie) as single numbers in the same order, so that a group number fits beside them."""
    factor = int(max(entries[1].max(), probes[1].max())) + 1
    entry, probe = entries[0] * factor + entries[1], probes[0] * factor + probes[1]
    values = sorted_unique(np.concatenate([entry, probe]))
    return np.searchsorted(values, entry), np.searchsorted(values, probe)
