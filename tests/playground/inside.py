"""pytest where no wheels are: inside Pyodide, or on the numpy stand-in under CPython.

Rule: Lace is left alone. Only what the test tools would take from compiled code is made up here: the few float
functions that hypothesis has compiled, and the generators that it seeds where numpy is loaded.
"""

from __future__ import annotations

import math
import os
import struct
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from types import ModuleType

_SMALLEST = sys.float_info.min


def _bits(value: float, width: int = 64) -> int:
    return int(struct.unpack("!Q", struct.pack("!d", value))[0])


def _of_bits(value: int, width: int = 64) -> float:
    return float(struct.unpack("!d", struct.pack("!Q", value))[0])


def _is_negative(value: float) -> bool:
    return math.copysign(1.0, value) < 0


def _between(low: float, high: float, width: int = 64) -> int:
    if _is_negative(low) and not _is_negative(high):
        return _between(low, -0.0) + _between(0.0, high)
    return abs(_bits(high) - _bits(low)) + 1


def _next(value: float, towards: float, normal_only: bool) -> float:
    found = math.nextafter(value, towards)
    if value == 0.0:  # the two zeros are neighbours here
        found = (
            -0.0 if towards < 0 < math.copysign(1.0, value) else 0.0 if _is_negative(value) and towards > 0 else found
        )
    if normal_only and 0 < abs(found) < _SMALLEST:
        return 0.0 if (found > 0) == (towards < 0) else math.copysign(_SMALLEST, towards)
    return found


def _module(name: str, **contents: object) -> ModuleType:
    made = ModuleType(name)
    made.__dict__.update(contents)
    sys.modules[name] = made
    return made


def stand_in_for_compiled_hypothesis() -> None:
    """The compiled module of hypothesis, if it cannot be loaded here."""
    package = PathFinder.find_spec("hypothesis", None)
    if package is None or PathFinder.find_spec("_native", package.submodule_search_locations) is not None:
        return
    _module("hypothesis._native", __version__="6")
    _module("hypothesis._native.internal")
    _module("hypothesis._native.internal.cathetus", cathetus=lambda hypotenuse, a: math.sqrt(hypotenuse**2 - a**2))
    _module(
        "hypothesis._native.internal.floats",
        count_between_floats=_between,
        float_of=lambda value, width: float(value),
        float_to_int=_bits,
        int_to_float=_of_bits,
        is_negative=_is_negative,
        next_down=lambda value, width=64: _next(value, -math.inf, False),
        next_up=lambda value, width=64: _next(value, math.inf, False),
        next_down_normal=lambda value, width, *, allow_subnormal: _next(value, -math.inf, not allow_subnormal),
        next_up_normal=lambda value, width, *, allow_subnormal: _next(value, math.inf, not allow_subnormal),
        width_smallest_normals=lambda width: _SMALLEST,
    )


class _Anything:
    """What hypothesis asks numpy for only to compare it with what a test maps over."""

    def __getattr__(self, name: str) -> _Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()


def stand_in_for_generators() -> None:
    """numpy.random, which hypothesis seeds and nothing here draws from, and names that it looks up."""
    import numpy

    state = {"seed": lambda *_: None, "set_state": lambda *_: None, "get_state": lambda *_: None}
    numpy.random = _module("numpy.random", **state)  # type: ignore[misc]
    for name in ("empty_like", "eye", "identity", "ones_like", "zeros_like", "asanyarray", "asmatrix", "copy", "rec",
                 "diag", "asarray_chkfinite", "asfortranarray", "full_like"):  # fmt: skip
        if not hasattr(numpy, name):
            setattr(numpy, name, _Anything())


def run(arguments: Sequence[str]) -> int:
    """pytest with nothing but itself and hypothesis."""
    stand_in_for_compiled_hypothesis()
    stand_in_for_generators()
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.dont_write_bytecode = True
    import pytest

    quiet = ["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "-o", "pythonpath=tests", "-o", "filterwarnings="]
    return int(pytest.main([*quiet, *arguments]))


if __name__ == "__main__":  # python inside.py ARGUMENT…: CPython on the stand-in
    import smallnumpy

    smallnumpy.install()
    sys.exit(run(sys.argv[1:]))
