"""Counting by sorting (030-CARD-12, P31): how many candidates stand beyond each candidate.

Rule: the number is exactly the count of the facts that the ordering rules would derive; see
`lace.datalog.planning.ranking`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lace.datalog.engine.index import Codes, pack
from lace.datalog.engine.runs import Run
from lace.datalog.engine.sorting import numbered, sorted_unique
from lace.datalog.engine.verdicts import Ranks, Verdicts, distinct_codes
from lace.datalog.planning.plan import Rank
from lace.datalog.planning.ranking import ID, KEY

Counts = npt.NDArray[np.int64]


def ranked_counts(rank: Rank, views: Sequence[Run], verdicts: Verdicts, domain: int) -> Counts | None:
    """For each code the number of facts counted for it; None where a candidate stands in several groups."""
    place_of = {name: position for position, name in rank.candidates.variables}
    counts = np.zeros(domain, np.int64)

    def column(name: str) -> Codes:
        return np.concatenate([np.empty(0, np.uint32), *(view.column(place_of[name]) for view in views)])

    ids = column(ID)
    keys = key_ranks(column(KEY) if KEY in place_of else ids, rank.kind, verdicts, domain)
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
    strict = (rank.tie_operator if rank.tie_kind else rank.operator) in ("<", ">")
    counts[ids] = _beyond(rank, ids, groups, most, least, strict, verdicts)
    if rank.others_only:
        counts[ids] -= (most > least) if strict else 1
    return counts


def key_ranks(column: Codes, kind: str, verdicts: Verdicts, domain: int) -> Ranks:
    codes = distinct_codes(column, domain)
    if not len(codes):
        return np.empty(0, np.int64)
    ranks = verdicts.ranks(codes, kind)
    if domain > 64 * len(column):
        return ranks[np.searchsorted(codes, column)]
    place_of = np.empty(domain, np.int32)  # a third of the time of searching, and only pages with codes are touched
    place_of[codes] = np.arange(len(codes), dtype=np.int32)
    return ranks[place_of[column]]


def _group_numbers(columns: Sequence[Codes], rows: int) -> Ranks:
    numbers = np.zeros(rows, np.int64)
    for column in columns:
        numbers = numbered(pack([numbers.astype(np.uint32), column]))[1]
    return numbers


def _extremes(ids: Codes, keys: Ranks, groups: Ranks) -> tuple[Codes, Ranks, Ranks, Ranks] | None:
    """Each id once, with its group, greatest and least key; None if an id has two groups."""
    if bool((ids[1:] > ids[:-1]).all()):  # as a derived relation has them, where each has one key
        return ids, groups, keys, keys
    order = np.lexsort((keys, ids))
    ids, keys, groups = ids[order], keys[order], groups[order]
    first = np.concatenate([[True], ids[1:] != ids[:-1]])
    if bool((~first[1:] & (groups[1:] != groups[:-1])).any()):
        return None
    starts = np.flatnonzero(first)
    ends = np.concatenate([starts[1:], [len(ids)]]) - 1
    return ids[starts], groups[starts], keys[ends], keys[starts]


def _beyond(
    rank: Rank, ids: Codes, groups: Ranks, most: Ranks, least: Ranks, strict: bool, verdicts: Verdicts
) -> Counts:
    """How many candidates of its own group stand beyond each: by what each key comes to, and by ties within one key."""
    entries, probes = _within_groups(groups, most, least)
    held = np.bincount(entries, minlength=int(probes.max()) + 1)  # how many each key of each group has
    of_group = np.bincount(groups)
    beyond = (len(ids) - np.cumsum(held))[probes] - (len(ids) - np.cumsum(of_group))[groups]
    if not rank.tie_kind:
        return beyond if strict else beyond + held[probes]
    users = held + np.bincount(probes[probes != entries], minlength=len(held))
    tied = np.flatnonzero((users[entries] > 1) | (users[probes] > 1))  # the others need no order of identities
    within = np.zeros(len(ids), np.int64) if strict else (entries == probes).astype(np.int64)  # itself
    if len(tied):
        within[tied] = _beyond_ties(rank, ids[tied], entries[tied], probes[tied], strict, verdicts)
    return beyond + within


def _beyond_ties(rank: Rank, ids: Codes, entries: Ranks, probes: Ranks, strict: bool, verdicts: Verdicts) -> Counts:
    """How many candidates at the key of each stand beyond it by their identities."""
    ties = verdicts.ranks(ids, rank.tie_kind)
    if rank.tie_operator in ("<", "<="):
        ties = len(ids) - ties
    width = len(ids) + 1
    ordered = np.sort(entries * width + ties)
    ends = np.searchsorted(ordered, (probes + 1) * width, "left")
    return ends - np.searchsorted(ordered, probes * width + ties, "right" if strict else "left")


def _within_groups(groups: Ranks, most: Ranks, least: Ranks) -> tuple[Ranks, Ranks]:
    """Keys as small numbers in the order of groups, then keys."""
    if not groups.any():
        return most, least
    width = int(max(most.max(), least.max())) + 1
    entries, probes = groups * width + most, groups * width + least
    values = sorted_unique(np.concatenate([entries, probes]))
    return np.searchsorted(values, entries), np.searchsorted(values, probes)
