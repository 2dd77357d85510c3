"""Which worker gets which test: tests by themselves, but those of one group one after another in one worker.

`--dist loadgroup` should do this by the mark xdist_group; xdist 3.8 writes the group into an attribute that pytest 9.2
no longer reads. Its scheduler is made for dozens of units: at the end of each test it counts through all that a worker
ever had, and it looks for each test in the list of all: 3.2 of the 11 CPU seconds that handing out 8,400 tests took.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController


class _Groups(LoadScopeScheduling):
    def __init__(self, group_of: Callable[[str], str | None], config: pytest.Config, log: object) -> None:
        super().__init__(config, log)  # type: ignore[arg-type]
        self._group_of = group_of
        self._places: dict[str, int] = {}

    def _split_scope(self, nodeid: str) -> str:
        return self._group_of(nodeid.partition("::")[0]) or nodeid

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        unit = self._split_scope(self.registered_collections[node][item_index])
        assigned = self.assigned_work[node]
        if unit not in assigned:  # a test of several parts is told of once for each
            return
        super().mark_test_complete(node, item_index, duration)
        if all(assigned[unit].values()):
            del assigned[unit]

    def _assign_work_unit(self, node: WorkerController) -> None:
        if not self._places:  # all workers have collected the same
            self._places = {nodeid: place for place, nodeid in enumerate(self.registered_collections[node])}
        name, unit = self.workqueue.popitem(last=False)
        self.assigned_work[node][name] = unit
        node.send_runtest_some([self._places[nodeid] for nodeid, is_over in unit.items() if not is_over])


def groups(group_of: Callable[[str], str | None], config: pytest.Config, log: object) -> object:
    """A scheduler under which the tests of a file belong to the group that `group_of` names, if it names one."""
    return _Groups(group_of, config, log)
