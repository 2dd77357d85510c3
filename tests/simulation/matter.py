"""What simulated worlds are made of: records, selectors and exposures, and what each means in plain set theory.

Nothing here evaluates rules: `selects` and `shows` are the answers written down apart, for the monotonic ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from lace.notation.identifiers import RecordHash
from lace.notation.tai import TAI
from lace.policy.exposure import Exposure, expose_all
from lace.policy.operand import Module
from lace.records.model import Blob, Plex, ValidRecord
from lace.records.validate import validate
from lace.records.write import encode_record

GROUPS = ("u", "v", "w")
APPS = ("ding", "member")


@dataclass(frozen=True)
class Matter:
    """A record of the simulated universe and what it says of itself."""

    record: ValidRecord
    group: str
    app: str

    @property
    def hash(self) -> RecordHash:
        return self.record.hash


# Contents chosen so that many hashes begin alike (k7, k7Q, Zz): partitions of several records, narrowing that counts.
BLOBS = (407, 156262)
PLEXES = (589119, 1539, 1369, 5030, 2634, 0, 0, 85552, 4160)


def _universe() -> list[Matter]:
    items = [Matter(validate(encode_record(Blob(b"%d" % content))), "", "") for content in BLOBS]
    for number, content in enumerate(PLEXES):
        group, app = GROUPS[number % 3], APPS[number % 2]
        tai = TAI("1640995200:000000000")
        plex = Plex(group=group, app=app, name=f"n/{number // 2}", tai=tai, blob=Blob(b"%d" % content))
        items.append(Matter(validate(encode_record(plex)), group, app))
    return items


UNIVERSE = _universe()
BY_HASH = {item.hash: item for item in UNIVERSE}
Meaning = Callable[[Matter], bool]


@dataclass(frozen=True)
class Selector:
    """A module and, if it is monotonic and local to a record, which records it means."""

    module: Module
    means: Meaning | None = None


def _fields(name: str, value: str) -> tuple[str, str]:
    return f"Field(P,'{name}',_,'{value}')", f"AdvertisedField(P,S,'{name}',_,'{value}')"


def _by_field(name: str, *values: str) -> Module:
    rules = []
    for value in values:
        have, advertised = _fields(name, value)
        rules.append(f"SelectHave(P) :- Have(P), {have}.\nSelectAdvertised(P,S) :- Advertised(P,S), {advertised}.")
    return Module.author("\n".join(rules))


ADVERTISED = "SelectAdvertised(P,S) :- Advertised(P,S)."
EVERYTHING = Selector(Module.author(f"SelectHave(P) :- Have(P).\n{ADVERTISED}"), lambda item: True)
MONOTONIC = [
    EVERYTHING,
    Selector(_by_field("Group", "u"), lambda item: item.group == "u"),
    Selector(_by_field("Group", "u", "v"), lambda item: item.group in ("u", "v")),
    Selector(_by_field("App", "ding"), lambda item: item.app == "ding"),
    Selector(_by_field("Type", "P"), lambda item: item.hash.type == "P"),
]
WILD = [
    Selector(Module.author(text))
    for text in (
        # an evidence loop
        "SelectHave(P) :- Have(P), Field(P,'App',_,'member').\n"
        "SelectHave(P) :- Have(P), Field(P,'Name',_,N), Known(N).\n"
        "Known(N) :- Have(Q), Field(Q,'App',_,'member'), Field(Q,'Name',_,N).\n"
        "SelectAdvertised(P,S) :- AdvertisedField(P,S,'App',_,'member').\n"
        "SelectAdvertised(P,S) :- AdvertisedField(P,S,'Name',_,N), Known(N).",
        # the send set shrinks with what the peer has
        f"SelectHave(P) :- Have(P), not Theirs(P).\nTheirs(P) :- Advertised(P,_).\n{ADVERTISED}",
        # the send set grows with what the peer has
        "SelectHave(P) :- Have(P), Field(P,'App',_,'member').\nSelectHave(P) :- Have(P), Theirs(_).\n"
        f"Theirs(P) :- Advertised(P,_).\n{ADVERTISED}",
        # the receive target shrinks with what arrives
        "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S), Cardinality(Have(_),'<','6').",
        # negation over validated fields
        "SelectHave(P) :- Have(P), not Blocked(P).\nBlocked(P) :- Field(P,'Group',_,'w').\n"
        "SelectAdvertised(P,S) :- Advertised(P,S), not AdvertisedField(P,S,'Group','0','w').",
        # time
        "SelectHave(P) :- Have(P), TickTAI(T), StartTAI(B), T != B.\n"
        "SelectHave(P) :- Have(P), Field(P,'Group',_,'u').\nSelectAdvertised(P,S) :- Advertised(P,S).",
        # all fields, through a helper
        "SelectHave(P) :- Have(P), Nice(P).\nNice(P) :- Field(P,_,_,'u').\nNice(P) :- Field(P,_,_,'ding').\n"
        "SelectAdvertised(P,S) :- AdvertisedField(P,S,_,_,'u').",
    )
]

ALTERNATING = WILD[1].module.id  # its listings may repeat without ever being those of the present moment


@dataclass(frozen=True)
class Showing:
    """Exposure modules and which records they show to everyone."""

    exposures: tuple[Exposure, ...]
    shows: Meaning


@cache
def showings() -> tuple[Showing, ...]:
    group = Exposure.author("AllowQueryRecord(V,P) :- Have(P), Field(P,'Group',_,'u').")
    app = Exposure.author("AllowQueryRecord(V,P) :- Have(P), Field(P,'App',_,'ding').")
    return (
        Showing((expose_all(),), lambda item: True),
        Showing((expose_all(),), lambda item: True),
        Showing((group,), lambda item: item.group == "u"),
        Showing((group, app), lambda item: item.group == "u" and item.app == "ding"),
        Showing((), lambda item: False),
    )
