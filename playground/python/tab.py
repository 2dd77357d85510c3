"""Python in a browser tab: what the machine around it lends to Lace.

Rule: three stand-ins, each with the surface of what it stands for and the same answers: JavaScript's BLAKE3 for the
`blake3` wheel, JavaScript's curve for libsecp256k1, `smallnumpy` for numpy. A tab's one thread takes all the time that
its process takes. Call `install` before Lace is imported.
"""

from __future__ import annotations

import sys
import time
from types import ModuleType
from typing import Any

from lace_js import blake3Hasher, combinePoints, publicPoint  # what the worker lends
from pyodide.ffi import to_js


class blake3:  # noqa: N801 - the name of the class in the wheel
    """The surface of `blake3.blake3` as far as Lace uses it, over a hasher of JavaScript."""

    __slots__ = ("_context", "_hasher")

    def __init__(self, data: Any = b"", /, *, derive_key_context: str | None = None) -> None:
        self._context = derive_key_context
        self.reset()
        if len(data):
            self.update(data)

    def reset(self) -> None:
        """Forget what was fed."""
        self._hasher = blake3Hasher(self._context)

    def update(self, data: Any, /) -> blake3:
        """Feed more bytes."""
        self._hasher.update(to_js(bytes(data)))
        return self

    def digest(self, length: int = 32) -> bytes:
        """The hash of everything fed so far."""
        return bytes(self._hasher.digest(length).to_py())


def combine(px: bytes, s: int, e: int) -> bytes | None:
    """s·G − e·P for the even-y P at x = px."""
    found = combinePoints(to_js(px), to_js(s.to_bytes(32, "big")), to_js(e.to_bytes(32, "big")))
    return None if found is None else bytes(found.to_py())


def public_point(scalar: bytes) -> bytes:
    """The compressed point of a scalar."""
    return bytes(publicPoint(to_js(scalar)).to_py())


def install() -> None:
    """Lend everything to the imports that follow."""
    import smallnumpy

    module = ModuleType("blake3")
    module.blake3 = blake3  # type: ignore[attr-defined]
    sys.modules["blake3"] = module
    smallnumpy.install()
    if not hasattr(time, "thread_time"):  # WebAssembly has no clock of a thread
        time.thread_time = time.process_time
    from lace.records import curve

    curve.use_host_curve(curve.HostCurve(combine, public_point))
