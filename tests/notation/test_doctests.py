"""The examples in docstrings say the truth."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from lace.notation import b64a, factline, tai, text


@pytest.mark.parametrize("module", [b64a, factline, tai, text], ids=lambda module: module.__name__)
def test_docstring_examples(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
