"""A set of ids that follows its changes (070, shared sets).

Rule: a generation is a value. Changing a set makes another one that shares nearly everything with it, so a snapshot is
the set itself, and linear things about it are what they were plus the change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

import numpy as np
import numpy.typing as npt

from lace.differences.ids import EMPTY, Ids, partition_sizes
from lace.values import dataclass

_MIN_PENDING = 4096  # changes that are kept beside the base before they are merged into it
_PENDING_SHARE = 16


@dataclass(frozen=True, slots=True, eq=False)
class _IdSetStep:
    """What came and what went from one generation to the next; `since` is the mark of the earlier one."""

    since: object
    came: Ids
    went: Ids


@dataclass(frozen=True, slots=True, eq=False)
class IdSet:
    """A large sorted base, and what came and went since it was made."""

    base: Ids = EMPTY
    added: Ids = EMPTY  # none of them in base
    removed: Ids = EMPTY  # all of them in base
    mark: object = field(default_factory=object)  # of this generation and no other
    step: _IdSetStep | None = None  # from the generation before

    def __len__(self) -> int:
        return len(self.base) + len(self.added) - len(self.removed)

    def among(self, wanted: Ids) -> npt.NDArray[np.bool_]:
        """Which of some ids are in the set."""
        found = self.base.among(wanted)
        if len(self.removed):
            found &= ~self.removed.among(wanted)
        if len(self.added):
            found |= self.added.among(wanted)
        return found

    def change(self, added: Ids, removed: Ids) -> IdSet:
        """The next generation: `removed` go first, then `added` come; what changes nothing is ignored."""
        going = removed.without(added)
        coming = added.take(~self.among(added)) if len(added) else added
        going = going.take(self.among(going)) if len(going) else going
        if not len(coming) and not len(going):
            return self
        more = self.added.without(going).with_(coming.take(~self.base.among(coming)))
        less = self.removed.without(coming).with_(going.take(self.base.among(going)))
        step = _IdSetStep(self.mark, coming, going)
        changed = IdSet(self.base, more, less, step=step)
        if len(more) + len(less) > max(_MIN_PENDING, len(self.base) // _PENDING_SHARE):
            return IdSet(changed.ids(), step=step)
        return changed

    def since(self, earlier: IdSet) -> tuple[Ids, Ids]:
        """What came and what went from an earlier generation to this one."""
        if self is earlier:
            return EMPTY, EMPTY
        if self.step is not None and self.step.since is earlier.mark:  # followers ask for no other step
            return self.step.came, self.step.went
        if self.base is earlier.base:  # nearly always, and then there is little to look at
            came = self.added.without(earlier.added).with_(earlier.removed.without(self.removed))
            went = earlier.added.without(self.added).with_(self.removed.without(earlier.removed))
            return came, went
        now, then = self.ids(), earlier.ids()
        return now.without(then), then.without(now)

    def is_near(self, earlier: IdSet, most: int) -> bool:
        """Whether this is an earlier generation, or the one after it, with few ids between them."""
        if self is earlier:
            return True
        step = self.step
        return step is not None and step.since is earlier.mark and len(step.came) + len(step.went) <= most

    def ids(self) -> Ids:
        """All ids, sorted."""
        return self.base.without(self.removed).with_(self.added)

    def partition_count(self) -> int:
        """How many of the 4,096 partitions by the first two symbols (050) are not empty."""
        sizes = partition_sizes(self.base)
        if len(self.added) or len(self.removed):
            sizes = sizes + partition_sizes(self.added) - partition_sizes(self.removed)
        return int(np.count_nonzero(sizes))

    def linear(self, measure: Callable[[Ids], npt.NDArray[np.uint64]]) -> npt.NDArray[np.uint64]:
        """A linear measure of the set, from its parts."""
        total = measure(self.base)
        if len(self.added):
            total = total + measure(self.added)
        if len(self.removed):
            total = total - measure(self.removed)
        return total


def set_of(ids: Ids) -> IdSet:
    """The first generation of a set."""
    return IdSet(ids)
