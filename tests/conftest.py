"""Shared test set-up: hypothesis profiles."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
settings.register_profile("deep", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=2000)
settings.load_profile(os.environ.get("LACE_HYPOTHESIS_PROFILE", "default"))
