"""From which addresses requests come, and from which an entry of a policy accepts them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

_MOST = 4096
"""Connections whose addresses are remembered: to read one takes longer than other checks."""

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def network(text: str) -> Network:
    """Return the network of a text such as "10.0.0.7", "10.1.0.0/16" or "fd00::/8".

    Raises:
        ValueError: the text is neither an address nor a network.
    """
    if "%" in text:
        raise ValueError("an address with a zone")
    return ip_network(text.strip(), strict=False)


@lru_cache(_MOST)
def source_of(peer: str) -> Address | None:
    """Return the address of a peer "ip:port" or "[ip6]:port"; None if it has none.

    An IPv4 address that is written as an IPv6 address is returned as what it is.
    """
    try:
        found = ip_address(source_text(peer).partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


def source_text(peer: str) -> str:
    """Return the address of a peer without its port."""
    return peer.rpartition(":")[0].strip("[]")


def is_within(source: Address | None, networks: Iterable[Network]) -> bool:
    """Return whether an address is in one of these networks."""
    return source is not None and any(
        source.version == each.version and source in each for each in networks
    )
