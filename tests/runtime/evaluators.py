"""The evaluator that tests of links use."""

from __future__ import annotations

from interlace.pair import ALL, Side
from lace.interlace.config import MachineConfig
from lace.policy.exposure import Exposure
from lace.runtime.side import PolicyEvaluator
from lace.store.base import RecordStore
from runtime.memory_link import ReferenceEvaluator


def make_evaluator(store: RecordStore, exposures: tuple[Exposure, ...]) -> PolicyEvaluator:
    """A fresh evaluator over a store."""
    return ReferenceEvaluator(Side(MachineConfig(index=0, module=ALL), exposures, store))  # type: ignore[arg-type]
