"""Who gets a link, who has to leave for whom, and in which order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.pair import VERIFIER_A, VERIFIER_B
from lace.iltp.address import TcpAddress, UnixAddress
from lace.limits import SECOND_NS
from lace.notation.identifiers import Verifier
from lace.runtime.admission import Admission, AdmissionLimits, PeerKind, Standing, peer_key
from lace.runtime.metering import Rate
from lace.transports.base import TransportProof
from lace.transports.prefix import network_prefix

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


def link(number: int, *, proven: bool = False, rests: float = 0.0, held: int = 0) -> Standing:
    return Standing(number, PeerKind.KEY if proven else PeerKind.ANONYMOUS, rests, held, 0.0)


def test_the_unproven_link_that_rested_longest_gives_its_place() -> None:
    admission = Admission(LIMITS)
    links = [link(1, rests=20), link(2, rests=30), link(3, proven=True, rests=99), link(4)]
    assert admission.leaver(links, proof("192.0.2.1")) == 2
    fresh = [link(1, rests=1), link(2, rests=2), link(3, proven=True, rests=99)]
    assert admission.leaver(fresh, proof("192.0.2.1")) is None
    assert admission.leaver(fresh, proof("192.0.2.1", VERIFIER_A)) == 2


def test_with_many_strangers_others_are_let_in_at_a_rate_and_proven_peers_at_once() -> None:
    admission = Admission(replace(LIMITS, calm_links=2, newcomers=Rate(1, 2)))
    for _ in range(4):
        assert admission.lets_in(proof("192.0.2.1"), 0)
        admission.enter(proof("192.0.2.1"), 0)
    assert not admission.lets_in(proof("192.0.2.2"), 0)
    assert admission.lets_in(proof("192.0.2.2", VERIFIER_A), 0)
    assert admission.lets_in(proof("192.0.2.2"), SECOND_NS)


def test_of_a_crowd_one_of_its_own_leaves_and_nobody_else() -> None:
    admission = Admission(LIMITS)
    for _ in range(3):
        admission.enter(proof("192.0.2.1"))
    others = Standing(1, PeerKind.ANONYMOUS, rests_s=99.0, held_bytes=0, cpu_s=0.0, peer="192.0.2.9")
    own = [Standing(number, PeerKind.ANONYMOUS, 10.0 + number, 0, 0.0, "192.0.2.1") for number in (2, 3)]
    assert admission.leaver([others, *own], proof("192.0.2.1")) == 3
    assert admission.leaver([others], proof("192.0.2.1")) is None
    assert admission.leaver([others, *own], proof("192.0.2.2")) == 1


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
    links = [link(1, rests=99), link(2, proven=True, rests=6), link(3, proven=True, rests=7)]
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
