"""Network prefixes: what one attacker has at hand.

Rule: an IPv4 address counts alone, IPv6 addresses by the /64 that a provider gives to one customer at least.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from lace.iltp.address import Address, StdioAddress, UnixAddress

IPV6_PREFIX_BITS = 64


@lru_cache(4096)
def network_prefix(host: str) -> str:
    """The prefix that a host counts for; a name stays as it is.

    >>> network_prefix("2001:db8:1:2:3::4"), network_prefix("::ffff:192.0.2.7")
    ('2001:db8:1:2::/64', '192.0.2.7')
    """
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    shift = 128 - IPV6_PREFIX_BITS
    return f"{IPv6Address(int(address) >> shift << shift)}/{IPV6_PREFIX_BITS}"


def network_of(address: Address) -> str:
    """The network that a peer counts for by where it came from; a socket or pipe counts for itself."""
    return str(address) if isinstance(address, StdioAddress | UnixAddress) else network_prefix(address.host)


def is_literal(host: str) -> bool:
    """Whether a host is an address and not a name: nobody can point a name at us with it."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether a host is reached from this machine only."""
    return host == "localhost" or (is_literal(host) and ip_address(host).is_loopback)
