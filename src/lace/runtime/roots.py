"""Roots that were worked out, kept for links to come: the peers of a node are told much the same (050, P16).

Rule: a root is used again only for exactly the claims it was worked out for, under the same label; so it makes no
difference but in time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from lace.interlace.advertisement import Advertisement
from lace.interlace.effects import Summarise
from lace.interlace.inputs import Summarised
from lace.interlace.partitions import Partition

WorkOut = Callable[[Summarise], Summarised]


@dataclass(slots=True)
class _Known:
    """What is remembered under one label."""

    busy: threading.Lock = field(default_factory=threading.Lock)  # who asks for the same meanwhile waits for it
    parts: dict[str, tuple[Sequence[Advertisement], Partition]] = field(default_factory=dict)
    claims: int = 0


class RememberedRoots:
    """The roots of the labels that were asked for last, over at most so many claims."""

    def __init__(self, work_out: WorkOut, max_claims: int) -> None:
        self._work_out = work_out
        self._max_claims = max_claims
        self._lock = threading.Lock()
        self._labels: dict[tuple[str, int], _Known] = {}  # the one used last stands last

    def summarise(self, effect: Summarise) -> Summarised:
        """Carry out Summarise."""
        label = effect.source, effect.max_line_bytes
        with self._lock:
            known = self._labels.pop(label) if label in self._labels else _Known()
            self._labels[label] = known
        with known.busy:
            found = {
                prefix: known.parts[prefix][1]
                for prefix, claims in effect.parts.items()
                if prefix in known.parts and known.parts[prefix][0] == claims
            }
            missing = {prefix: claims for prefix, claims in effect.parts.items() if prefix not in found}
            if missing:
                for partition in self._work_out(replace(effect, parts=missing)).partitions:
                    found[partition.prefix] = partition
                    known.parts[partition.prefix] = missing[partition.prefix], partition
                known.claims = sum([len(claims) for claims, _ in known.parts.values()])
        self._forget()
        return Summarised([found[prefix] for prefix in effect.parts])

    def _forget(self) -> None:
        """Drop the labels that were not asked for for the longest time, and one that is too long by itself."""
        with self._lock:
            held = sum(known.claims for known in self._labels.values())
            for label in list(self._labels):
                if held <= self._max_claims:
                    return
                held -= self._labels.pop(label).claims
