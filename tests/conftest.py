"""Shared test set-up: hypothesis profiles, which tests share a worker process, and which begin first."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
settings.register_profile("deep", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=2000)
# For tools/mutants.py: the same examples every time, nothing kept, and a failure is enough without its smallest form.
settings.register_profile(
    "mutants",
    settings.get_profile("default"),
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile(os.environ.get("LACE_HYPOTHESIS_PROFILE", "default"))

SPARK_TESTS = "tests/spark/"
# One worker each, so that one JVM and one browser serve them all.
TOGETHER = (SPARK_TESTS, "tests/inspector/test_stories.py")
# What takes longest begins first: started last it would keep one worker busy while the others have nothing left.
LONG = ("tests/test_demo.py", "tests/siege/", "tests/test_readme.py", "tests/interop/test_processes.py")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Tests by themselves, but those on Spark as one group: they share a session, and so one JVM; browsers likewise.

    `--dist loadgroup` should do this by the mark xdist_group; xdist 3.8 writes the group into an attribute that pytest
    9.2 no longer reads.
    """
    from xdist.scheduler import LoadScopeScheduling

    class OneJvm(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return next((place for place in TOGETHER if nodeid.startswith(place)), nodeid)

    return OneJvm(config, log)
