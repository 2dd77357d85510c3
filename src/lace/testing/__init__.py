"""For tests of programs that embed Lace: pairs of laces, a clock that a test moves, and what moved or was withheld.

    from lace.testing import assert_moved, assert_withheld

    def test_private_letters_stay(lace_pair):
        here, there = lace_pair
        letter = here.put(b"dear", group="u", app="private", name="1")
        assert_moved(lace.exchange(here, there, select="//u//public//", expose="selected"), there, [])
        assert_withheld(letter, here, there, at="selected", select="//u//public//", expose="selected")

With pytest installed, `lace_pair`, `lace_clock` and `lace_folder` are fixtures in every test, by the plugin `lace`.

Rule: real laces and real exchanges; nothing here stands in for a part of Lace. A failed assertion says what moved, or
which gate a record stopped at and why.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lace.testing.asserting import assert_moved, assert_withheld
    from lace.testing.clock import MovableClock

__all__ = ["MovableClock", "assert_moved", "assert_withheld"]
_HOMES = {"MovableClock": "clock", "assert_moved": "asserting", "assert_withheld": "asserting"}


def __getattr__(name: str) -> object:
    """On first use: the simulator runs where a node does not, in a browser tab."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
