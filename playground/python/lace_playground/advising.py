"""What one can do on the page where a record stops: a rule to add, a choice to make, an exchange to start.

Rule: each piece of advice says which lace changes and how, as data that the page can carry out with one press.
"""

from __future__ import annotations

from typing import Any

from lace.porcelain.why import Walk
from lace.testing.simulator.stage import Stage

Advice = dict[str, Any]


def advice(stage: Stage, walked: Walk, record: Advice, sender: int, receiver: int) -> list[Advice]:
    """What would let a record pass the gate that it stops at; nothing where it needs no help."""
    stopped = walked.stopped
    if stopped is None:
        have = walked.record in stage.held(receiver)
        return [] if have else [{"do": "play", "words": "Exchange: it comes over."}]
    here, there = stage.names[sender], stage.names[receiver]
    if stopped.name.startswith("selected by its own"):
        return _select(record, sender, here)
    if stopped.name.startswith("exposed"):
        return _expose(stage, record, sender, here, there)
    if stopped.name.startswith("selected by the other"):
        return [*_select(record, receiver, there), *_see(stage, sender, here, there)]
    if stopped.name.startswith("wanted"):
        return _select(record, receiver, there)
    return []


def _select(record: Advice, number: int, name: str) -> list[Advice]:
    edit = {"do": "edit", "lace": number, "field": "select", "words": f"Look at the rules of {name}."}
    values = [record["group"], record["app"]]
    if any(letter in value for value in values for letter in "'\\\n"):
        return [edit]
    group, app = values
    rules = (
        f"SelectHave(P) :- Have(P), Field(P,'Group',_,'{group}'), Field(P,'App',_,'{app}').\n"
        f"SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'{group}'), "
        f"AdvertisedField(P,S,'App',_,'{app}').\n"
    )
    words = f"Let the rules of {name} select everything in //{group}//{app}."
    return [{"do": "add", "lace": number, "field": "select", "text": rules, "words": words}, edit]


def _expose(stage: Stage, record: Advice, number: int, name: str, viewer: str) -> list[Advice]:
    given = stage.given[number]
    everything = {"do": "expose", "lace": number, "expose": "all", "words": f"Let {name} show everything to {viewer}."}
    if given.expose == "none":
        words = f"Let {name} show what the rules of {name} select."
        return [{"do": "expose", "lace": number, "expose": "selected", "words": words}, everything]
    if given.expose != "rules" or any(letter in record["group"] for letter in "'\\\n"):
        return [everything]
    rule = f"AllowQueryRecord(Viewer,P) :- Have(P), Field(P,'Group',_,'{record['group']}').\n"
    words = f"Let {name} show everything in //{record['group']}."
    return [{"do": "add", "lace": number, "field": "expose_rules", "text": rule, "words": words}, everything]


def _see(stage: Stage, number: int, name: str, viewer: str) -> list[Advice]:
    """Rules of the other side see only what is shown to them."""
    if stage.given[number].expose == "all":
        return []
    return [{"do": "expose", "lace": number, "expose": "all", "words": f"Let {name} show everything to {viewer}."}]
