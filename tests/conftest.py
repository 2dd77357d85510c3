"""Shared test set-up: hypothesis profiles, which tests share a worker process, and which begin first."""

from __future__ import annotations

import gc
import os
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

# How many examples an ordinary property is tried with (tests/tries.py). Every run draws others; what failed is kept in
# .hypothesis and tried first, and the line that repeats it is printed.
for profile, examples in {"default": 20, "thorough": 60, "nightly": 300, "deep": 2000}.items():
    settings.register_profile(
        profile,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        max_examples=examples,
        print_blob=True,
    )
# For tools/mutants.py: the same examples every time, nothing kept, and a failure is enough without its smallest form.
settings.register_profile(
    "mutants",
    settings.get_profile("default"),
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile(os.environ.get("LACE_HYPOTHESIS_PROFILE", "default"))

# Thousands of tests and all their modules are made here and live to the end: looking for garbage among them time and
# again takes a third of the collection, and every worker collects.
gc.disable()

# Which tests of Spark share a session, and so one JVM: two groups of about equal length, each in a worker of its own.
# One after another they would still run when all other tests are over; a third JVM would have to be
# started and warmed as well (decision 305). A file that asks for no session belongs to no group.
ROOT = Path(__file__).parent.parent
SECOND_JVM = ("test_executor.py", "test_few.py", "test_query.py", "test_reuse.py", "test_source.py")
TOGETHER = {
    "tests/inspector/test_stories.py": "browser",  # one serves them all
    "tests/cli/test_terminal.py": "screens",  # every command is run once on each of them
    "tests/test_architecture.py": "sources",  # are parsed once
}
STANDING_BACK = 5  # as `nice` counts


@cache
def _group(file: str) -> str | None:
    """The group of a test file whose tests run one after another in one worker; None: any worker takes any of them."""
    path = Path(file)
    if file in TOGETHER:
        return TOGETHER[file]
    if path.parent.name != "spark" or "spark: SparkSession" not in (ROOT / path).read_text(encoding="utf-8"):
        return None
    return "second JVM" if path.name in SECOND_JVM else "first JVM"


@cache
def _stand_back() -> None:
    """From now on this worker, and whatever it starts, takes what tests of Spark leave of the processors."""
    os.nice(STANDING_BACK)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """The groups of Spark are what takes longest from its first test to its last: beside them all others wait."""
    group = _group(item.nodeid.partition("::")[0])
    if "PYTEST_XDIST_WORKER" in os.environ and not (group or "").endswith("JVM"):
        _stand_back()


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """What is marked slow is for the night; what is marked long is slow as well, but `make test` runs it."""
    if item.get_closest_marker("slow") is not None:
        item.add_marker("nightly")
    elif item.get_closest_marker("long") is not None:
        item.add_marker("slow")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first: started last it would keep one worker busy while the others have no work."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Tests by themselves, but those that share a JVM or a browser as one group."""
    from handing_out import groups

    gc.enable()  # this process hands out tests and collects none
    return groups(_group, config, log)


def pytest_collection_finish() -> None:
    """The garbage collector need not visit what is collected ever again."""
    gc.freeze()
    gc.enable()
