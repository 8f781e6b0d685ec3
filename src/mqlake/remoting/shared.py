"""What the connections of one server or client share: writing together, memory, turns."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Final, Generic, Protocol, TypeVar

from mqlake.protocol import json_header
from mqlake.protocol.header import Header
from mqlake.protocol.signature import Credentials
from mqlake.remoting.complaints import Complaints
from mqlake.remoting.latencies import Latencies
from mqlake.remoting.limits import Limits
from mqlake.remoting.memory_budget import Holder, MemoryBudget
from mqlake.remoting.quotas.quotas import Counted, Quotas
from mqlake.remoting.shares import Shares, owner_of
from mqlake.remoting.stream.frame_reader import RunKind
from mqlake.remoting.tls.handshakes import Handshakes
from mqlake.remoting.tls.layer import Below
from mqlake.remoting.turns import Turns

_READ: Final = 1 << 18
"""Bytes that are read from a connection in one call."""
_BUSY_READ: Final = 1 << 15
"""Bytes that are read while other connections wait for their turn."""
_FULL_READ: Final = 1 << 12
"""Bytes that are read while memory already exceeds the budget."""


class SharedConnection(Counted, Holder, Protocol):
    """A connection, as `Peer` is one.

    Attributes:
        is_relayed: whether a proxy has yet to name its client.
    """

    is_relayed: bool

    @property
    def is_limited(self) -> bool:
        """Return whether its next request must be counted for a limit, or would be refused."""
        ...

    def flush(self) -> None:
        """Write what was sent."""
        ...

    def close(self, reason: str) -> None:
        """Close the connection; data that was sent before is still written."""
        ...


M = TypeVar("M", bound=SharedConnection)
M_contra = TypeVar("M_contra", bound=SharedConnection, contravariant=True)


class DirectReader(Protocol[M_contra]):
    """Receives from the sockets of some connections, and answers there what it knows.

    A connection is offered to it once `Inlet.note_suitable` was called. It passes everything else
    to `Inlet.receive`, in the order of its arrival. It reads a connection only while
    `Inlet.may_be_read_directly` is true: then nothing waits to be written, and nothing that arrived
    before waits to be served.
    """

    def join(self, peer: M_contra) -> None:
        """Read a connection from now on, if possible."""
        ...

    def leave(self, peer: M_contra) -> None:
        """Stop reading a connection. What is received already is still served."""
        ...

    def last_read(self, peer: M_contra) -> float:
        """Return when a connection that is read here was last read, as `time.monotonic` has it."""
        ...


class Shared(Generic[M]):
    """The connections of one server or client on one event loop.

    Args:
        is_server: whether a connection that does not read is no longer read. A client reads answers
            even if it cannot write: otherwise both sides would wait for each other.

    Attributes:
        peers: the open connections.
        runs: which frames may be served many in one call.
        direct: reads some connections instead of their transports; None if none does.
        budget: the memory budget.
        turns: decides which connection is served when.
        connections: the maximum of open connections.
        share: percent of them that one address may open (`Limits.share`).
        buffer: the buffer into which data is read.
        tls: what TLS connections need.
        last_read: the connection from which data arrived last.
        is_closed: whether new connections are closed at once.
        quotas: limits addresses and users; None without such limits.
        credentials: sign the requests that are sent; None for unsigned requests.
        latencies: measures requests; None if that is not wanted.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: Limits,
        typed: Mapping[int, type[Header]] | None = None,
        runs: Collection[RunKind] = (),
        *,
        is_server: bool = True,
    ) -> None:
        self.loop = loop
        self.limits = limits
        self.is_server = is_server
        self.complaints = Complaints(loop.time)
        self.decode_json = json_header.decode_typed(typed or {})
        self.runs = runs
        self.quotas: Quotas | None = None
        self.credentials: Credentials | None = None
        self.latencies: Latencies | None = None
        self.direct: DirectReader[M] | None = None
        self.peers: set[M] = set()
        self.budget = MemoryBudget(limits.memory, loop)
        self.turns = Turns(loop)
        self.connections, self.share = limits.connections, limits.share
        self._shares = Shares(lambda: self.share)
        self.last_read: M | None = None
        self.is_closed = False
        self.buffer = memoryview(bytearray(_READ))
        self._busy, self._full = self.buffer[:_BUSY_READ], self.buffer[:_FULL_READ]
        self._writers: list[M] = []
        self.tls = Below(loop, self.room, Handshakes(loop), limits.handshake)

    def opened(self, peer: M) -> str | None:
        """Count a connection; return why it must be closed, None if the maximum allows it.

        The address of a proxy counts for nothing: each connection is its client's.
        """
        owner, count = owner_of(peer.address), len(self.peers)
        refusal = self._shares.refusal(owner, count, self.connections, "connections")
        if peer.is_relayed and count < self.connections:
            refusal = None
        self.peers.add(peer)
        self._shares.add(owner)
        if self.quotas is not None and not peer.is_relayed:
            refusal = self.quotas.opened(peer) or refusal
        return refusal

    def lost(self, peer: M) -> None:
        """Forget a connection."""
        if peer in self.peers:
            self.peers.discard(peer)
            self._shares.add(owner_of(peer.address), -1)
            if self.quotas is not None:
                self.quotas.lost(peer)
        self.budget.hold(peer, 0)
        if self.last_read is peer:
            self.last_read = None

    def room(self) -> memoryview:
        """Return the buffer for the next bytes of a connection: a short one under load.

        However many connections have data in one round of the loop, that then takes little time and
        memory.
        """
        if self.budget.used > self.budget.limit:
            return self._full
        return self._busy if self.turns.waiting else self.buffer

    def note_reading(self, peer: M) -> None:
        """Note that data has arrived from a connection."""
        self.last_read = peer

    def will_write(self, peer: M) -> None:
        """Flush a connection once this round of the loop is over."""
        if not self._writers:
            self.loop.call_soon(self.flush)
        self._writers.append(peer)

    def flush(self) -> None:
        """Write what was sent on all connections, one write for each."""
        writers, self._writers = self._writers, []
        for peer in writers:
            peer.flush()
