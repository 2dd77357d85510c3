"""Shared test set-up: hypothesis profiles, and one worker process for all tests that need a JVM."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
settings.register_profile("deep", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=2000)
settings.load_profile(os.environ.get("LACE_HYPOTHESIS_PROFILE", "default"))

SPARK_TESTS = "tests/spark/"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Tests by themselves, but those on Spark as one group: they share a session, and so one JVM.

    `--dist loadgroup` should do this by the mark xdist_group; xdist 3.8 writes the group into an attribute that pytest
    9.2 no longer reads.
    """
    from xdist.scheduler import LoadScopeScheduling

    class OneJvm(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return SPARK_TESTS if nodeid.startswith(SPARK_TESTS) else nodeid

    return OneJvm(config, log)
