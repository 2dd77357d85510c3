"""Mutants that were read and mean the same as the original, each with the reason.

What a rule can say stands in `changes._means_nothing`; here stands what only a reader can. A test sees that each is
still there: whoever changes the line decides anew.
"""

from __future__ import annotations

SAME: dict[tuple[str, str, str], str] = {  # (path under src/lace, line, change) -> why no run can tell them apart
    (
        "interlace/transfer.py",
        "if len(found) > wanted.max_requests:",
        "comparison: len(found) > wanted.max_requests -> len(found) >= wanted.max_requests",
    ): "the smallest n of n, sorted afterwards, are all of them",
    (
        "interlace/transfer.py",
        "if len(distinct) == len(records) and distinct <= self.outstanding:",
        "comparison: distinct <= self.outstanding -> distinct < self.outstanding",
    ): "the last that were asked for are taken one by one instead of at once",
    (
        "records/curve.py",
        "alike: list[list[Any]] = [[] for _ in range(1 << bits)]",
        "constant: 1 -> 2",
    ): "twice as many lists as there are digits: the others stay empty",
    (
        "notation/bytesource.py",
        "if len(seen) >= count:",
        "condition: len(seen) >= count -> False",
    ): "of further chunks nothing is added; it only saves looking at them",
    (
        "notation/bytesource.py",
        "if len(seen) >= count:",
        "comparison: len(seen) >= count -> len(seen) > count",
    ): "of one more chunk nothing is added",
    (
        "iltp/packed.py",
        "lines = reader.decompress(data, whole + 1)",
        "constant: 1 -> 2",
    ): "a byte more than was told is enough to see that there are more, and two are as well",
    (
        "datalog/engine/sorting.py",
        "middle = len(keys) // 2",
        "constant: 2 -> 3",
    ): "keys are searched for by themselves: any two parts of them give the same places",
    (
        "datalog/engine/verdicts.py",
        "if domain <= 16 * len(column) + 65_536:",
        "comparison: domain <= 16 * len(column) + 65536 -> domain < 16 * len(column) + 65536",
    ): "both ways give the same codes; which costs less changes nowhere near there",
    (
        "datalog/engine/scalar.py",
        "bound_slot = slot(bound.name) if isinstance(bound, Variable) else -1",
        "constant: 1 -> 2",
    ): "only whether it is negative is asked",
    (
        "datalog/engine/table.py",
        "return ColumnRun([], self.rows, 0)",
        "constant: 0 -> 1",
    ): "a run without columns has no code that a domain could bound",
    (
        "datalog/engine/rank.py",
        "keys = np.where(keys >= 0, keys.max(initial=0) - keys, -1)  # beyond is always the greater side",
        "constant: 1 -> 2",
    ): "only the order of keys counts, and whether one is negative",
    (
        "datalog/engine/rank.py",
        "if domain > 64 * len(column):",
        "condition: domain > 64 * len(column) -> False",
    ): "both ways give the same ranks; which costs less changes slowly there",
    (
        "datalog/engine/rank.py",
        "if domain > 64 * len(column):",
        "comparison: domain > 64 * len(column) -> domain >= 64 * len(column)",
    ): "both ways give the same ranks; which costs less changes slowly there",
    (
        "datalog/engine/rank.py",
        "if domain > 64 * len(column):",
        "operator: 64 * len(column) -> 64 + len(column)",
    ): "both ways give the same ranks; which costs less changes slowly there",
    (
        "datalog/engine/rank.py",
        "if domain > 64 * len(column):",
        "constant: 64 -> 65",
    ): "both ways give the same ranks; which costs less changes slowly there",
    (
        "datalog/engine/rank.py",
        "if bool((ids[1:] > ids[:-1]).all()):  # as a derived relation has them, where each has one key",
        "condition: bool((ids[1:] > ids[:-1]).all()) -> False",
    ): "sorting what is sorted changes nothing",
    (
        "datalog/engine/rank.py",
        "held = np.bincount(entries, minlength=int(probes.max()) + 1)  # how many stand at each key of each group",
        "constant: 1 -> 2",
    ): "one more key at which nobody stands",
    (
        "datalog/engine/rank.py",
        "tied = np.flatnonzero((users[entries] > 1) | (users[probes] > 1))  # the others need no order of identities",
        "comparison: users[entries] > 1 -> users[entries] >= 1",
    ): "whoever is alone at a key is counted alike with an order of identities and without",
    (
        "datalog/engine/rank.py",
        "tied = np.flatnonzero((users[entries] > 1) | (users[probes] > 1))  # the others need no order of identities",
        "comparison: users[probes] > 1 -> users[probes] >= 1",
    ): "whoever is alone at a key is counted alike with an order of identities and without",
    (
        "datalog/engine/rank.py",
        "width = len(ids) + 1",
        "constant: 1 -> 2",
    ): "any width that is greater than all ranks keeps keys apart",
    (
        "datalog/engine/rank.py",
        "if not groups.any():",
        "condition: not groups.any() -> False",
    ): "one group gives the same places as none",
    (
        "datalog/engine/rank.py",
        "width = int(max(most.max(), least.max())) + 1",
        "constant: 1 -> 2",
    ): "any width that is greater than all keys keeps groups apart",
    (
        "datalog/engine/ranking_state.py",
        "if last < 0 or first >= size:",
        "comparison: last < 0 -> last <= 0",
    ): "there stand counts below none or above all, which no candidate has",
    (
        "datalog/engine/ranking_state.py",
        "if last < 0 or first >= size:",
        "constant: 0 -> 1",
    ): "there stand counts below none or above all, which no candidate has",
    (
        "datalog/engine/ranking_state.py",
        "start = bisect_left(group.probes, (*group.entries[first][:2], -1)) if first >= 0 else 0",
        "constant: 1 -> 2",
    ): "identities are not negative; nobody stands before the first entry and has its count",
    (
        "datalog/engine/ranking_state.py",
        "start = bisect_left(group.probes, (*group.entries[first][:2], -1)) if first >= 0 else 0",
        "comparison: first >= 0 -> first > 0",
    ): "identities are not negative; nobody stands before the first entry and has its count",
    (
        "datalog/engine/ranking_state.py",
        "edge = bisect_right(entries, (key, tie, _LAST)) if after else bisect_left(entries, (key, tie, -1))",
        "constant: 1 -> 2",
    ): "identities are not negative",
    (
        "datalog/engine/difference.py",
        "if packing.total > 64:",
        "comparison: packing.total > 64 -> packing.total >= 64",
    ): "at 64 bits both ways are exact",
    (
        "datalog/engine/difference.py",
        "if packing.total <= 64:",
        "comparison: packing.total <= 64 -> packing.total < 64",
    ): "at 64 bits both ways are exact",
    (
        "datalog/engine/difference.py",
        "if packing.total <= _BITMAP_BITS:",
        "condition: packing.total <= _BITMAP_BITS -> False",
    ): "marks and sorted keys give the same rows",
    (
        "datalog/engine/difference.py",
        "if packing.total <= _BITMAP_BITS:",
        "comparison: packing.total <= _BITMAP_BITS -> packing.total < _BITMAP_BITS",
    ): "marks and sorted keys give the same rows",
    (
        "datalog/engine/difference.py",
        "marks = np.zeros(1 << packing.total, np.uint8)",
        "constant: 1 -> 2",
    ): "more marks than keys",
    (
        "datalog/engine/relation.py",
        "if len(keys) * 32 > self._space:",
        "condition: len(keys) * 32 > self._space -> False",
    ): "marking and sorting give the same keys",
    (
        "datalog/engine/relation.py",
        "if len(keys) * 32 > self._space:",
        "comparison: len(keys) * 32 > self._space -> len(keys) * 32 >= self._space",
    ): "marking and sorting give the same keys",
    (
        "datalog/engine/relation.py",
        "if len(keys) * 32 > self._space:",
        "operator: len(keys) * 32 -> len(keys) + 32",
    ): "marking and sorting give the same keys",
    (
        "datalog/engine/relation.py",
        "if len(keys) * 32 > self._space:",
        "constant: 32 -> 33",
    ): "marking and sorting give the same keys",
    (
        "datalog/engine/index.py",
        "mixed = pack(keys[:2])",
        "constant: 2 -> 3",
    ): "only two columns are packed, however many are given",
    (
        "datalog/engine/index.py",
        "mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX",
        "constant: 29 -> 30",
    ): "another mixture that is as good",
    (
        "datalog/engine/index.py",
        "if len(keys) and int(keys.max()) >= domain:",
        "comparison: int(keys.max()) >= domain -> int(keys.max()) > domain",
    ): "a code that is the last place falls on it anyway",
    (
        "datalog/engine/index.py",
        "row = self._cells[key[0]] if key[0] < self._domain else -1",
        "comparison: key[0] < self._domain -> key[0] <= self._domain",
    ): "the last place is empty, and only whether a row is negative is asked",
    (
        "datalog/engine/index.py",
        "row = self._cells[key[0]] if key[0] < self._domain else -1",
        "constant: 1 -> 2",
    ): "the last place is empty, and only whether a row is negative is asked",
    (
        "datalog/engine/index.py",
        "if max(key) >= self._domain:",
        "comparison: max(key) >= self._domain -> max(key) > self._domain",
    ): "no row has the first code beyond the domain, and there is a place for it",
    (
        "datalog/engine/index.py",
        "if key[0] >= self._domain:",
        "comparison: key[0] >= self._domain -> key[0] > self._domain",
    ): "the last pair of offsets is empty",
    (
        "datalog/engine/index.py",
        "if len(column) > domain:",
        "condition: len(column) > domain -> False",
    ): "more rows than codes share one, which is found out later as well",
    (
        "datalog/engine/path.py",
        "if len(positions) > 1:",
        "condition: len(positions) > 1 -> False",
    ): "both ways read the same values",
    (
        "datalog/engine/path.py",
        "if len(positions) > 1:",
        "constant: 1 -> 2",
    ): "both ways read the same values",
    (
        "datalog/engine/beside.py",
        "new = run_of(self._came.values(), self._width, 0)",
        "constant: 0 -> 1",
    ): "only the columns of this run are read",
    (
        "datalog/beyond.py",
        "if not read:",
        "condition: not read -> False",
    ): "without such a literal nothing is rewritten",
    (
        "datalog/lineparser.py",
        "if len(terms) > self.limits.max_tuple_arity:",
        "comparison: len(terms) > self.limits.max_tuple_arity -> len(terms) >= self.limits.max_tuple_arity",
    ): "what is not read whole is read piece by piece, to the same end",
}
