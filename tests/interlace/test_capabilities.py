"""Which capabilities a hello announces, and with which values."""

from __future__ import annotations

import pytest

from lace.interlace.setup.hello import offered_capabilities


@pytest.mark.clause("070-CAP-04")
def test_capabilities_are_announced_by_these_names_and_values() -> None:
    assert offered_capabilities(differences=True, compression=True, salt=77, holds_nothing=True) == (
        ("x_differences", 1),
        ("x_differences_salt", 77),
        ("x_differences_nothing", 1),
        ("x_compression", 1),
    )
    assert offered_capabilities(differences=True, compression=True, salt=77, takes=256) == (
        ("x_differences", 1),
        ("x_differences_salt", 77),
        ("x_differences_take", 256),
        ("x_compression", 1),
    )
    assert offered_capabilities(differences=False, compression=True, salt=77, holds_nothing=True, takes=256) == (
        ("x_compression", 1),
    )
    assert offered_capabilities(differences=True, compression=False, salt=77) == (
        ("x_differences", 1),
        ("x_differences_salt", 77),
    )
    assert offered_capabilities(differences=True, compression=True, salt=None, holds_nothing=True, takes=256) == ()
