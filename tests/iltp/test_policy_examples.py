"""The policy examples of 060: trusted prepared policy over what a transport proves (060-POL)."""

from __future__ import annotations

import pytest

from executors import reference
from lace.datalog.language.canonical import Lacegram
from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Predicate
from lace.notation.fact import Fact

MEMBER = "Member(V) :- Have(P), Field(P,'Group',_,'u'), Field(P,'App',_,'member'), Field(P,'Name',_,V).\n"
PROVEN = "MayRequest(P) :- AdvertisedField(P,S,'Signed-By',_,V), Peer(V)."
BY_MEMBER = MEMBER + "MayRequest(P) :- AdvertisedField(P,S,'Signed-By',_,V), Member(V)."
OVER_UNIX = "MayRequest(P) :- AdvertisedField(P,S,'Signed-By',_,V), Transport(T), TextShape(T,'unix:','','')."
ENCRYPTED = "MayRequest(P) :- AdvertisedField(P,S,'Signed-By',_,V), TransportEncrypted()."
BOTH = MEMBER + "MayRequest(P) :- AdvertisedField(P,S,'Signed-By',_,V), Peer(V), Member(V)."


def fact(name: str, *values: str) -> Fact:
    return Fact(Predicate(name, len(values)), values)


ADVERTISED = [
    fact("AdvertisedField", "by-alice", "S", "Signed-By", "0", "V.alice"),
    fact("AdvertisedField", "by-bob", "S", "Signed-By", "0", "V.bob"),
]
BOB_IS_MEMBER = [
    fact("Have", "m"),
    fact("Field", "m", "Group", "0", "u"),
    fact("Field", "m", "App", "0", "member"),
    fact("Field", "m", "Name", "0", "V.bob"),
]


@pytest.mark.parametrize(
    "policy, proven, requested",
    [
        pytest.param(PROVEN, [], set(), marks=pytest.mark.clause("060-POL-01", "060-RT-08")),
        pytest.param(PROVEN, [fact("Peer", "V.alice")], {"by-alice"}, marks=pytest.mark.clause("060-POL-01")),
        pytest.param(BY_MEMBER, [], set(), marks=pytest.mark.clause("060-POL-02")),
        pytest.param(BY_MEMBER, BOB_IS_MEMBER, {"by-bob"}, marks=pytest.mark.clause("060-POL-02")),
        pytest.param(
            BY_MEMBER,
            [fact("AdvertisedField", "m", "S", "Name", "0", "V.alice"), *BOB_IS_MEMBER[:3]],
            set(),
            marks=pytest.mark.clause("060-POL-02"),
        ),
        pytest.param(OVER_UNIX, [fact("Transport", "tcp:unix:1")], set(), marks=pytest.mark.clause("060-POL-03")),
        pytest.param(
            OVER_UNIX, [fact("Transport", "unix:/s")], {"by-alice", "by-bob"}, marks=pytest.mark.clause("060-POL-03")
        ),
        pytest.param(ENCRYPTED, [], set(), marks=pytest.mark.clause("060-POL-04", "060-RT-11")),
        pytest.param(
            ENCRYPTED, [fact("TransportEncrypted")], {"by-alice", "by-bob"}, marks=pytest.mark.clause("060-POL-04")
        ),
        pytest.param(BOTH, BOB_IS_MEMBER, set(), marks=pytest.mark.clause("060-POL-05")),
        pytest.param(BOTH, [fact("Peer", "V.bob")], set(), marks=pytest.mark.clause("060-POL-05")),
        pytest.param(BOTH, [fact("Peer", "V.alice"), *BOB_IS_MEMBER], set(), marks=pytest.mark.clause("060-POL-05")),
        pytest.param(BOTH, [fact("Peer", "V.bob"), *BOB_IS_MEMBER], {"by-bob"}, marks=pytest.mark.clause("060-POL-05")),
    ],
)
def test_an_example_requests_exactly_what_is_proven(policy: str, proven: list[Fact], requested: set[str]) -> None:
    derived = reference.evaluate(Lacegram.from_program(parse_program(policy)).checked, [*ADVERTISED, *proven])
    assert {values[0] for values in derived.get(Predicate("MayRequest", 1), ())} == requested
