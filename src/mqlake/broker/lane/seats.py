"""The connections that the lane reads, those that it does not read again soon, and how those with
TLS are received.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from mqlake.broker.lane.layout import BYTES, CONNECTION, FULL, UNRECEIVED
from mqlake.errors import FormatError
from mqlake.formats.host import V4_SIZE, encode_host
from mqlake.remoting.connection import Peer

if TYPE_CHECKING:
    from mqlake.broker.lane.decisions import SendDecisions
    from mqlake.broker.lane.kernel import LaneKernel
    from mqlake.dispatch.batch import Bytes, Longs

_MOST_OTHERS: Final = 8
"""Receipts that began with something unusual, more than usual sends, after which a connection must
leave.
"""
_PAUSE: Final = 64
"""Receipts with usual sends that its transport then reads first."""


class Seats:
    """Connections by the file descriptors of their sockets, which epoll watches.

    Attributes:
        epoll: the file descriptor of epoll.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self.epoll = self._epoll.fileno()
        self._peers: dict[int, Peer] = {}
        self._sockets: dict[Peer, int] = {}
        self._others: WeakKeyDictionary[Peer, int] = WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self._peers)

    def __iter__(self) -> Iterator[Peer]:
        return iter(list(self._sockets))

    def peer(self, socket: int) -> Peer | None:
        """Return the connection with a socket."""
        return self._peers.get(socket)

    def socket(self, peer: Peer) -> int | None:
        """Return the socket of a connection."""
        return self._sockets.get(peer)

    def enter(self, peer: Peer) -> tuple[int, bytes] | None:
        """Watch a connection; return its socket and its host. None if that is not possible."""
        others = self._others.get(peer, 0)
        if others < 0:
            self._others[peer] = others + 1
            return None
        host, socket = host_of(peer.address), peer.socket_number
        if len(host) != V4_SIZE or socket <= BYTES:
            return None
        try:
            self._epoll.register(socket, select.EPOLLIN)
        except OSError:
            return None
        # A connection whose socket was closed may not have been told yet.
        if (lost := self._peers.get(socket)) is not None:
            self._sockets.pop(lost, None)
        self._peers[socket], self._sockets[peer] = peer, socket
        return socket, host

    def leave(self, peer: Peer) -> int | None:
        """Stop watching a connection; return its socket, None if it was not watched."""
        socket = self._sockets.pop(peer, None)
        if socket is not None:
            del self._peers[socket]
            with suppress(OSError):  # The socket is closed already.
                self._epoll.unregister(socket)
        return socket

    def note_other(self, peer: Peer, usual: int) -> bool:
        """Note that what arrived began with something unusual; return whether that is seldom.

        Args:
            usual: how many usual sends were served since the last time.
        """
        others = max(self._others.get(peer, 0) + 1 - usual, 0)
        self._others[peer] = others if others < _MOST_OTHERS else -_PAUSE
        return others < _MOST_OTHERS

    def close(self) -> None:
        """Watch nothing more."""
        self._epoll.close()


class Decryption:
    """Decrypts what has arrived, between two calls of the kernel.

    Args:
        decisions: call the kernel.
        peer_of: returns the connection with a number.
    """

    def __init__(self, decisions: SendDecisions, peer_of: Callable[[int], Peer | None]) -> None:
        self._decisions, self._peer_of = decisions, peer_of
        self._ended: list[tuple[Peer, str]] = []

    def serve(self, kernel: LaneKernel, log: Bytes, ends: Longs) -> int:
        """Call the kernel as often as it needs more data; return why that ends.

        The caller notes afterwards what was put: nothing else may be put in between.

        Args:
            log, ends: see `LaneKernel.serve`.
        """
        call = self._decisions.serve
        while (reason := call(kernel, log, ends, self._peer_of)) == UNRECEIVED:
            if not self.receive(kernel):
                return FULL
        return reason

    def receive(self, kernel: LaneKernel) -> bool:
        """Receive what the kernel serves next; return whether it can be called at once.

        A connection that must leave stays until `end`: what it has sent before would be put.
        """
        peer = self._peer_of(kernel.numbers[CONNECTION])
        if peer is None:
            kernel.take()
            return False
        size, is_open, fault = peer.inlet.receive_into(kernel.room())
        if size:
            kernel.note_received(size)
        if fault or not is_open:
            self._ended.append((peer, fault))
        return size > 0 or (is_open and not fault)

    def end(self) -> None:
        """Close connections whose other side has broken the protocol, and let the transports of
        others that have ended read them.
        """
        if self._ended:
            ended, self._ended = self._ended, []
            for peer, fault in ended:
                if fault:
                    peer.evict(fault)
                else:
                    peer.inlet.read_indirectly()


@lru_cache(maxsize=1024)
def host_of(address: str) -> bytes:
    """Return an address as records have it; b"" if it cannot be read."""
    try:
        return encode_host(address)
    except FormatError:
        return b""
