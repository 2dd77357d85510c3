"""Whether compiled extras may be used: `LACE_PURE=1` in the environment says no.

Rule: a pure run gives the same bytes and answers as any other, at its own pace; it shows that nothing rests on a wheel.
"""

from __future__ import annotations

import os

IS_PURE = os.environ.get("LACE_PURE", "") not in {"", "0"}
