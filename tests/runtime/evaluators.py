"""The evaluator that tests of links use: the one that a node uses."""

from __future__ import annotations

from lace.policy.exposure import Exposure
from lace.runtime.evaluate import StoreEvaluator
from lace.runtime.side import PolicyEvaluator
from lace.store.base import RecordStore


def make_evaluator(store: RecordStore, exposures: tuple[Exposure, ...]) -> PolicyEvaluator:
    """A fresh evaluator over a store."""
    return StoreEvaluator(store, exposures)
