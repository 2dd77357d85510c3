"""Sets of made-up ids for tests."""

from __future__ import annotations

import numpy as np

from lace.differences.ids import Ids, ids_of_digests
from lace.differences.keyed import derive_key

KEY = derive_key(b"HelloTAI('1')\n", b"HelloTAI('2')\n")
_LETTERS = np.frombuffer(b"BPS", np.uint8)


def random_ids(count: int, seed: int) -> Ids:
    """So many ids, the same for the same seed."""
    rng = np.random.default_rng(seed)
    return ids_of_digests(rng.integers(0, 256, (count, 32), dtype=np.uint8), _LETTERS[rng.integers(0, 3, count)])
