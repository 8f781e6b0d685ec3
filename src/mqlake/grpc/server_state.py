"""What the connections of one server share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeVar

from mqlake.grpc.call import FinishedCall
from mqlake.grpc.limits import GrpcLimits
from mqlake.grpc.method import Method
from mqlake.grpc.outlet import Flushes
from mqlake.grpc.served_call import ServedCall
from mqlake.remoting.complaints import Complaints
from mqlake.remoting.memory_budget import MemoryBudget
from mqlake.remoting.shares import Shares, owner_of
from mqlake.remoting.tls.accepted import Accepted
from mqlake.remoting.tls.handshakes import Handshakes
from mqlake.remoting.tls.layer import Below
from mqlake.remoting.turns import Turns

C = TypeVar("C", bound=Accepted)

_READ: Final = 1 << 18
"""Bytes that are read from a connection in one call."""
_BUSY_READ: Final = 1 << 15
"""Bytes that are read while other connections wait for their turn."""
_FULL_READ: Final = 1 << 12
"""Bytes that are read while memory already exceeds the budget."""


class ServerState(Generic[C]):
    """The connections of one server on one event loop.

    Attributes:
        methods: by the path of their requests.
        flushes: writes what was sent in a round of the loop.
        connections: the open connections.
        budget: the memory budget.
        turns: decides which connection is served when.
        buffer: the buffer into which data is read.
        tls: what TLS connections need.
        is_closed: whether new connections are closed at once.
        most, share: the maximum of open connections, and how many percent one address may open.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: GrpcLimits,
        methods: Mapping[str, Method],
        on_finished: Callable[[FinishedCall], object] | None,
    ) -> None:
        self.loop, self.limits, self.methods = loop, limits, methods
        self.flushes = Flushes(loop, on_finished)
        self.complaints = Complaints(loop.time)
        self.connections: set[C] = set()
        self.budget = MemoryBudget(limits.memory, loop)
        self.turns = Turns(loop)
        self.most, self.share = limits.connections, limits.share
        self._shares = Shares(lambda: self.share)
        self.is_closed = False
        self.buffer = memoryview(bytearray(_READ))
        self._busy, self._full = self.buffer[:_BUSY_READ], self.buffer[:_FULL_READ]
        self._deadlines: dict[int, set[ServedCall]] = {}
        self.tls = Below(loop, self.room, Handshakes(loop), limits.handshake)

    def opened(self, peer: C) -> str | None:
        """Count a connection; return why it must be closed, None if the maximum allows it."""
        owner, count = owner_of(peer.address), len(self.connections)
        refusal = self._shares.refusal(owner, count, self.most, "connections")
        if peer.is_relayed and count < self.most:
            refusal = None
        self.connections.add(peer)
        self._shares.add(owner)
        return refusal

    def lost(self, peer: C) -> None:
        """Forget a connection."""
        if peer in self.connections:
            self.connections.discard(peer)
            self._shares.add(owner_of(peer.address), -1)
        self.budget.hold(peer, 0)

    def room(self) -> memoryview:
        """Return the buffer for the next bytes of a connection: a short one under load."""
        if self.budget.used > self.budget.limit:
            return self._full
        return self._busy if self.turns.waiting else self.buffer

    # Deadlines are kept by the second: clients have timers of their own, so that this is only for
    # those whose reset does not arrive.

    def note_deadline(self, served: ServedCall, deadline: float) -> None:
        """End a call about a second after its deadline."""
        second = int(deadline) + 1
        self._deadlines.setdefault(second, set()).add(served)

    def forget_deadline(self, served: ServedCall, deadline: float) -> None:
        """Forget a call that has ended."""
        second = int(deadline) + 1
        calls = self._deadlines.get(second)
        if calls is not None:
            calls.discard(served)
            if not calls:
                del self._deadlines[second]

    def overdue(self) -> list[ServedCall]:
        """Return the calls whose deadline has passed."""
        now = self.loop.time()
        seconds = [second for second in self._deadlines if second <= now]
        return [served for second in seconds for served in self._deadlines.pop(second)]
