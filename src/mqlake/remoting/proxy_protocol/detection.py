"""A connection may begin with a header in which a proxy names its client, before TLS."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, Generic, Protocol, TypeVar, cast

from mqlake.remoting.proxy_protocol.header import MOST, ProxyHeaderError, may_begin, read
from mqlake.remoting.tls.accepted import Accepted, Accepting

A = TypeVar("A", bound=Accepted)

Network = IPv4Network | IPv6Network
SETTING: Final = "proxyProtocolAddresses"
_READ: Final = 1 << 14
"""Bytes that are read at once until it is decided."""


class HeaderSuccessor(Protocol):
    """The protocol that reads what follows a header."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...
    def get_buffer(self, sizehint: int) -> memoryview: ...
    def buffer_updated(self, nbytes: int) -> None: ...


class ProxyDetection(asyncio.BufferedProtocol, Generic[A]):
    """The protocol of a connection until a header is complete, or cannot follow.

    A header counts only if it comes from an address that may send one: everybody else could claim
    any address. Until it is complete, the connection does not count to the proxy's address.

    Args:
        peer: the connection.
        following: reads what follows; it may be the peer.
        proxies: who may send a header.
    """

    def __init__(
        self, peer: A, following: HeaderSuccessor, shared: Accepting[A], proxies: Sequence[Network]
    ) -> None:
        self._peer, self._following, self._shared = peer, following, shared
        self._proxies = proxies
        self._raw: asyncio.Transport | None = None
        self._data = bytearray()
        self._rest = 0
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = cast("asyncio.Transport", transport)
        self._peer.is_relayed = _is_within(transport, self._proxies)
        self._following.connection_made(transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        # What was held is later put before it.
        return self._peer.get_buffer(sizehint)[:_READ]

    def buffer_updated(self, nbytes: int) -> None:
        """Read the header, or leave it to those who follow."""
        if self._peer.is_closed:
            return
        room = self._shared.buffer
        if self._rest:
            self._skip(nbytes)
        elif not may_begin(first := bytes(self._data + room[: MOST - len(self._data)][:nbytes])):
            self._leave(nbytes, first)
        elif not self._peer.is_relayed:
            self._peer.evict(f"it begins like a proxy's header, and is not in {SETTING}")
        else:
            self._read(nbytes, first)

    def _read(self, nbytes: int, first: bytes) -> None:
        """Read the header as far as it has arrived."""
        try:
            header = read(first)
        except ProxyHeaderError as error:
            self._peer.evict(f"its proxy's header is wrong: {error}")
            return
        if header is None:
            self._data[:] = first
            self._wait()
        else:
            self._identify(header.client)
            self._rest = header.size - len(self._data)
            self._skip(nbytes)

    def _leave(self, nbytes: int, first: bytes) -> None:
        """Let the others read a connection without a header."""
        self._identify(None)
        held = len(self._data)
        if held and not self._peer.is_closed:
            room = self._shared.buffer
            room[held : held + nbytes] = bytes(room[:nbytes])
            room[:held] = first[:held]
        self._follow(held + nbytes)

    def _skip(self, nbytes: int) -> None:
        """Skip what has arrived of the header; pass on what follows it."""
        room, over = self._shared.buffer, nbytes - self._rest
        if over < 0:
            self._rest -= nbytes
            self._wait()
            return
        room[:over] = bytes(room[self._rest : nbytes])
        self._follow(over)

    def _identify(self, client: str | None) -> None:
        """Count the connection to its client, or to the address that it comes from."""
        peer = self._peer
        if peer.is_relayed:
            self._shared.lost(peer)
            peer.is_relayed, peer.address = False, client or peer.address
            if (refusal := self._shared.opened(peer)) is not None:
                peer.evict(f"too many connections are open: {refusal}")

    def _follow(self, nbytes: int) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        if self._peer.is_closed or self._raw is None:
            return
        self._raw.set_protocol(cast("asyncio.BaseProtocol", self._following))
        if nbytes:
            self._following.buffer_updated(nbytes)

    def _wait(self) -> None:
        below = self._shared.tls
        if self._deadline is None:
            self._deadline = below.loop.call_later(below.seconds, self._too_slow, below.seconds)

    def _too_slow(self, seconds: float) -> None:
        self._peer.evict(f"its proxy's header is not complete after {seconds:g} s")

    def pause_writing(self) -> None:
        self._peer.pause_writing()

    def resume_writing(self) -> None:
        self._peer.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._peer.connection_lost(exc)


def _is_within(transport: asyncio.BaseTransport, proxies: Sequence[Network]) -> bool:
    name = transport.get_extra_info("peername")
    if name is None:  # It is already gone.
        return False
    found = ip_address(name[0].partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return any((mapped or found) in network for network in proxies)
