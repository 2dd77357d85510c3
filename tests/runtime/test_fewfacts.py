"""A few facts asked about by rules that were compiled once: each answer is of those facts alone."""

from __future__ import annotations

import pytest

from differences.test_shared import questions
from interlace.pair import config_of, group_module, plex
from lace.datalog.engine import RowSource
from lace.errors import LaceError
from lace.facts.derive import derive_facts
from lace.interlace.host import Call
from lace.limits import EngineLimits
from lace.records.validate import validate
from lace.runtime.rules import fewfacts
from lace.runtime.rules.evaluator import StoreEvaluator
from lace.runtime.rules.fewfacts import FewFacts
from lace.store.memory import MemoryStore

MODULE = group_module("u")
RECORDS = [validate(plex(f"n/{n}", group="u" if n % 2 else "v")) for n in range(6)]


def asker() -> FewFacts:
    evaluator = StoreEvaluator(MemoryStore(), config_of(0, MODULE).terms)
    evaluator.prepare(questions(MODULE)[0])
    return FewFacts(evaluator.lowered, EngineLimits())


def ask(few: FewFacts, *numbers: int, call: Call | None = None) -> list[str] | None:
    facts = RowSource(fact for n in numbers for fact in derive_facts(RECORDS[n]))
    found = few.ask(few._policy.sendable, [facts], (), call or Call())
    return None if found is None else sorted(found)


def names(*numbers: int) -> list[str]:
    return sorted(str(RECORDS[n].hash) for n in numbers)


def test_each_answer_is_of_the_facts_of_its_question() -> None:
    few = asker()
    assert ask(few, 0, 1) == names(1)
    assert ask(few, 1, 3) == names(1, 3)
    assert ask(few) == []
    assert ask(few, 5) == names(5)


def test_texts_are_forgotten_after_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fewfacts, "_MOST_TEXTS", 40)
    few = asker()
    held = []
    for n in range(6):
        assert ask(few, n) == names(*([n] if n % 2 else []))
        held.append(few._derived)
    assert len({id(one) for one in held}) > 1


def test_a_question_that_was_broken_off_leaves_nothing_behind() -> None:
    few, call = asker(), Call()
    assert ask(few, 1) == names(1)
    call.cancel()
    with pytest.raises(LaceError):
        ask(few, 3, call=call)
    assert ask(few, 5) == names(5)


def test_much_is_not_answered_here_and_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    few = asker()
    with few._busy:
        assert ask(few, 1) is None
    monkeypatch.setattr(fewfacts, "_MOST", 3)
    assert ask(few, 1) is None
