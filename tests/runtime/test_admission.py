"""Who gets a link, who has to leave for whom, and in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.pair import VERIFIER_A, VERIFIER_B
from lace.iltp.address import TcpAddress, UnixAddress
from lace.limits import SECOND_NS
from lace.notation.identifiers import Verifier
from lace.runtime.node.admission import Admission, AdmissionLimits, PeerKind, Standing, peer_key
from lace.runtime.node.metering import Rate
from lace.transports.base import TransportProof
from lace.transports.networks import network_prefix

LIMITS = AdmissionLimits(max_links=8, reserved_links=2, max_links_per_peer=3, max_held_bytes=100, yield_after_s=5.0)


def proof(host: str, peer: str | None = None) -> TransportProof:
    return TransportProof(address=TcpAddress(host), peer=None if peer is None else Verifier.parse(peer))


@pytest.mark.parametrize(
    ("host", "prefix"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::7", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("example.com", "example.com"),
    ],
)
def test_unproven_peers_are_counted_by_what_one_attacker_has_at_hand(host: str, prefix: str) -> None:
    assert network_prefix(host) == prefix
    assert peer_key(proof(host)) == prefix


def test_a_proven_peer_is_counted_by_its_key_wherever_it_comes_from() -> None:
    assert peer_key(proof("192.0.2.1", VERIFIER_A)) == VERIFIER_A
    assert peer_key(TransportProof(address=UnixAddress("/run/x"))) == "unix:/run/x"


def test_addresses_of_one_ipv6_customer_share_their_links() -> None:
    admission = Admission(LIMITS)
    for number in range(3):
        assert not admission.is_crowd(proof(f"2001:db8::{number}"))
        admission.enter(proof(f"2001:db8::{number}"))
    assert admission.is_crowd(proof("2001:db8::ffff"))
    assert not admission.is_crowd(proof("2001:db8:0:1::1"))


def test_reserved_links_are_for_proven_peers_only() -> None:
    admission = Admission(LIMITS)
    for number in range(6):
        admission.enter(proof(f"192.0.2.{number}"))
    assert admission.is_full_for(proof("192.0.2.99"))
    assert not admission.is_full_for(proof("192.0.2.99", VERIFIER_A))
    admission.leave(proof("192.0.2.0"))
    assert not admission.is_full_for(proof("192.0.2.99"))


def link(number: int, *, proven: bool = False, rests: float = 0.0, held: int = 0, peer: str = "") -> Standing:
    return Standing(number, PeerKind.KEY if proven else PeerKind.ANONYMOUS, rests, held, 0.0, peer)


def with_links(*links: Standing, limits: AdmissionLimits = LIMITS, trusted: Sequence[str] = ()) -> Admission:
    """As if these links had entered, each from the network it names."""
    admission = Admission(replace(limits, max_links_per_peer=99), [Verifier.parse(text) for text in trusted])
    for found in links:
        admission.enter(proof(found.peer, VERIFIER_B if found.kind is PeerKind.KEY else None))
    return admission


def test_a_full_house_makes_room_for_a_smaller_crowd_by_the_link_that_rested_longest() -> None:
    crowd = [link(number, rests=10.0 + number, peer="192.0.2.1") for number in range(4)]
    few = [link(8, rests=99, peer="192.0.2.2"), link(9, peer="192.0.2.3")]
    admission = with_links(*crowd, *few)
    assert admission.leaver([*crowd, *few], proof("192.0.2.9")) == 3
    working = [replace(found, rests_s=0.0) for found in crowd]
    fresh = [replace(found, rests_s=1.0) for found in crowd]
    for busy in (working, fresh):
        assert admission.leaver([*busy, *few], proof("192.0.2.9")) is None


def test_nobody_leaves_for_an_equal_and_nobody_for_one_of_its_own() -> None:
    """Two that pushed each other out would do so for ever."""
    ones = [link(number, rests=99, peer=f"192.0.2.{number}") for number in range(6)]
    admission = with_links(*ones)
    assert admission.is_full_for(proof("192.0.2.9"))
    assert admission.leaver(ones, proof("192.0.2.9")) is None
    assert admission.leaver(ones, proof("192.0.2.1")) is None
    crowd = [link(number, rests=99, peer="192.0.2.1") for number in range(6)]
    assert with_links(*crowd).leaver(crowd, proof("192.0.2.1")) is None


def test_who_proves_a_key_takes_the_place_of_whoever_proves_nothing() -> None:
    links = [link(1, rests=1, peer="192.0.2.1"), link(2, rests=2, peer="192.0.2.2")]
    key = link(3, proven=True, rests=99, peer="192.0.2.3")
    admission = with_links(*links, key)
    assert admission.leaver([*links, key], proof("192.0.2.9", VERIFIER_A)) == 2
    assert admission.leaver([*links, key], proof("192.0.2.9")) is None


@given(st.lists(st.integers(0, 12), min_size=1, max_size=60))
def test_whoever_comes_in_whatever_order_places_settle_and_are_shared_evenly(networks: list[int]) -> None:
    """All rest, and all who are pushed out or turned away come again: after a while nobody moves."""
    admission, standing, waiting, moves = with_links(), list[Standing](), list(networks), 0
    names = [f"192.0.2.{network}" for network in range(13)]
    for number in range(400):
        if not waiting:
            break
        network = waiting.pop(0)
        newcomer = proof(names[network])
        if admission.is_full_for(newcomer):
            leaver = admission.leaver(standing, newcomer)
            if leaver is None:
                waiting.append(network)
                continue
            gone = next(found for found in standing if found.number == leaver)
            standing.remove(gone)
            admission.leave(proof(gone.peer))
            waiting.append(names.index(gone.peer))
            moves += 1
        admission.enter(newcomer)
        standing.append(link(number, rests=99.0, peer=names[network]))
    assert moves <= 36  # six places, each given away a few times at most
    have = Counter(found.peer for found in standing)
    for network in waiting:
        assert max(have.values()) <= have[names[network]] + 1


def test_with_many_strangers_others_are_let_in_at_a_rate_and_proven_peers_at_once() -> None:
    admission = Admission(replace(LIMITS, calm_links=2, newcomers=Rate(1, 2)))
    for _ in range(4):
        assert admission.lets_in(proof("192.0.2.1"), 0)
        admission.enter(proof("192.0.2.1"), 0)
    assert not admission.lets_in(proof("192.0.2.2"), 0)
    assert admission.lets_in(proof("192.0.2.2", VERIFIER_A), 0)
    assert admission.lets_in(proof("192.0.2.2"), SECOND_NS)


def test_a_peer_that_has_all_it_may_have_gets_no_place_of_anybody() -> None:
    admission = Admission(LIMITS)
    for _ in range(3):
        admission.enter(proof("192.0.2.1"))
    others = [link(1, rests=99.0, peer="192.0.2.9"), link(2, rests=99.0, peer="192.0.2.1")]
    assert admission.leaver(others, proof("192.0.2.1")) is None


@given(
    st.lists(
        st.builds(
            Standing,
            number=st.integers(0, 1 << 30),
            kind=st.sampled_from(PeerKind),
            rests_s=st.sampled_from([0.0, 1.0, 50.0]),
            held_bytes=st.integers(0, 200),
            cpu_s=st.just(0.0),
        ),
        unique_by=lambda found: found.number,
    )
)
def test_eviction_ends_below_the_budget_of_each_kind_and_never_takes_a_known_peer(links: list[Standing]) -> None:
    gone = {number for number, _ in Admission(LIMITS).evicted(links)}
    assert not gone & {found.number for found in links if found.kind is PeerKind.KNOWN}
    for kind in (PeerKind.ANONYMOUS, PeerKind.KEY):
        of_kind = [found for found in links if found.kind is kind]
        left = [found for found in of_kind if found.number not in gone and found.held_bytes]
        assert sum(found.held_bytes for found in left) <= LIMITS.max_held_bytes or len(left) == 1
        working, resting = (
            [f for f in of_kind if f.number in gone and (f.rests_s == 0) is busy] for busy in (True, False)
        )
        if working:  # nobody at rest who holds something stays while one at work has to go
            assert not [found for found in left if found.rests_s > 0] or len(left) == 1
        assert all(found.held_bytes or found.rests_s > LIMITS.max_rest_s for found in resting)


def test_once_too_much_is_held_links_leave_until_it_is_half_of_that() -> None:
    most = LIMITS.max_held_bytes
    fitting = [Standing(number, PeerKind.ANONYMOUS, 0.0, most // 4, 0.0) for number in range(4)]
    assert Admission(LIMITS).evicted(fitting) == []
    assert len(Admission(LIMITS).evicted([*fitting, Standing(9, PeerKind.ANONYMOUS, 0.0, most // 4, 0.0)])) == 3


def test_keys_that_nobody_knows_take_half_of_the_places_at_most_and_leave_each_other_the_rest() -> None:
    """Anybody can make a thousand: they must not keep out those who prove nothing, nor those we know."""
    admission = Admission(replace(LIMITS, max_links_per_peer=99), trusted=[Verifier.parse(VERIFIER_A)])
    for number in range(4):
        assert not admission.is_full_for(proof(f"192.0.2.{number}", VERIFIER_B))
        admission.enter(proof(f"192.0.2.{number}", VERIFIER_B))
    newcomer = proof("192.0.2.9", VERIFIER_B)
    assert admission.is_full_for(newcomer)
    assert not admission.is_full_for(proof("192.0.2.9"))
    assert not admission.is_full_for(proof("192.0.2.9", VERIFIER_A))
    for _ in range(2):
        admission.enter(proof("192.0.2.1", VERIFIER_B))  # now a crowd of three
    crowd = [link(number, proven=True, rests=4.0 + number, peer="192.0.2.1") for number in (2, 3)]
    links = [link(1, rests=99, peer="192.0.2.7"), *crowd]
    assert admission.leaver(links, newcomer) == 3  # one that proves nothing would make no place for a key
    assert admission.leaver(links, proof("192.0.2.9", VERIFIER_A)) == 1
    assert admission.leaver(links[1:], proof("192.0.2.9", VERIFIER_A)) == 3
    assert admission.leaver([Standing(4, PeerKind.KNOWN, 99.0, 0, 0.0)], proof("192.0.2.9", VERIFIER_A)) is None


def test_another_key_is_no_other_peer_unless_we_know_it() -> None:
    admission = Admission(LIMITS, trusted=[Verifier.parse(VERIFIER_A)])
    assert admission.account(proof("192.0.2.1", VERIFIER_B)) == admission.account(proof("192.0.2.1")) == "192.0.2.1"
    assert admission.account(proof("192.0.2.1", VERIFIER_A)) == VERIFIER_A


def test_an_unproven_link_that_rests_too_long_is_closed() -> None:
    limits = replace(LIMITS, max_rest_s=10.0)
    assert Admission(limits).evicted([link(1, rests=11), link(2, rests=9), link(3, proven=True, rests=99)]) == [
        (1, "rested too long without proof")
    ]
