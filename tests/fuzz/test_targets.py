"""Every input that fuzzing began with or found keeps the promises of its parser; so do cut and mixed ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.targets import FOLDERS, TARGETS

CORPORA = Path(__file__).resolve().parents[1] / "corpus"
INPUTS = {
    name: [path.read_bytes() for path in sorted((CORPORA / FOLDERS.get(name, name)).iterdir())] for name in TARGETS
}
LIGHT = [name for name in TARGETS if name not in ("codec", "session", "compared")]


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_keeps_the_promises(name: str) -> None:
    assert INPUTS[name]
    for data in INPUTS[name]:
        TARGETS[name](data)


@pytest.mark.parametrize("name", LIGHT)
@given(st.data())
def test_edited_inputs_keep_the_promises(name: str, data: st.DataObject) -> None:
    first, second = (data.draw(st.sampled_from(INPUTS[name])) for _ in range(2))
    at, until = data.draw(st.integers(0, len(first))), data.draw(st.integers(0, len(second)))
    TARGETS[name](first[:at] + data.draw(st.binary(max_size=8)) + second[until:])


def test_a_broken_promise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz.targets.parse_common", lambda stored, limits: "something else")
    with pytest.raises(AssertionError):
        TARGETS["record"](INPUTS["record"][0])
