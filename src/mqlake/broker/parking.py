"""Requests that wait for an event or a timeout.

However many wait, one round of the loop never handles all of them: those whose time is up together,
and those whose connection is closed, are handled a slice at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Generic, Protocol, TypeVar

from mqlake.remoting.connection import Peer
from mqlake.remoting.slices import Job, Slices

_log = logging.getLogger(__name__)

_SHARE = 64
"""One of so many requests of the greediest connection is ended to make room for others."""
GRAIN = 0.05
"""Seconds by which a request may wait longer than it asked for: requests of one moment share a
timer.
"""


class Parked(Protocol):
    """A request that waits.

    Attributes:
        peer: the connection that waits for the answer.
        moment: the requests that end at the same time; None while it does not wait.
    """

    peer: Peer
    moment: dict[Parked, None] | None


P = TypeVar("P", bound=Parked)


class Parking(Generic[P]):
    """Requests that wait.

    Args:
        over: called with a request whose time is up; it no longer waits.
        gone: called with a request whose connection is closed; it no longer waits.
    """

    def __init__(
        self, slices: Slices, over: Callable[[P], object], gone: Callable[[P], object]
    ) -> None:
        self._slices, self._over, self._gone = slices, over, gone
        self._loop = asyncio.get_running_loop()
        self._moments: dict[int, dict[P, None]] = {}
        self._ended: deque[dict[P, None]] = deque()
        self._of: dict[Peer, dict[P, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def of(self, peer: Peer) -> int:
        """Return how many requests of a connection wait."""
        return len(self._of.get(peer, ()))

    def greediest(self) -> tuple[Peer | None, list[P]]:
        """Return the connection with the most waiting requests, and the oldest of them."""
        peer = max(self._of, key=self.of, default=None)
        if peer is None:
            return None, []
        own = self._of[peer]
        return peer, list(islice(own, max(1, len(own) // _SHARE)))

    def enter(self, request: P, deadline: float) -> bool:
        """Let a request wait until a loop time; return whether it does: its connection is open."""
        peer = request.peer
        if peer.is_closed:
            return False
        tick = int(deadline / GRAIN) + 1
        moment = self._moments.get(tick)
        if moment is None:
            moment = self._moments[tick] = {}
            self._loop.call_at(tick * GRAIN, self._end, tick)
        request.moment = moment  # pyright: ignore[reportAttributeAccessIssue]
        moment[request] = None
        own = self._of.get(peer)
        if own is None:
            own = self._of[peer] = {}
            peer.on_close(self._closed)
        own[request] = None
        self._count += 1
        return True

    def leave(self, request: P) -> bool:
        """Stop a request from waiting; return whether it waited."""
        moment = request.moment
        if moment is None:
            return False
        del moment[request]
        request.moment = None
        own = self._of.get(request.peer)
        if own is not None:
            own.pop(request, None)
        self._count -= 1
        return True

    def _end(self, tick: int) -> None:
        moment = self._moments.pop(tick)
        if not moment:
            return
        self._ended.append(moment)
        if len(self._ended) == 1:
            self._slices.start(self._end_all())

    def _end_all(self) -> Job[None]:
        while self._ended:
            moment = self._ended[0]
            for request in list(moment):
                if request in moment and self.leave(request):
                    self._call(self._over, request)
                    yield
            self._ended.popleft()

    def _closed(self, peer: Peer) -> None:
        own = self._of.pop(peer, None)
        if own:
            self._slices.start(self._drop(own))

    def _drop(self, own: dict[P, None]) -> Job[None]:
        for request in own:
            if self.leave(request):
                self._call(self._gone, request)
            yield

    def _call(self, function: Callable[[P], object], request: P) -> None:
        """Call a function; its errors do not affect the other requests."""
        try:
            function(request)
        except Exception:  # noqa: BLE001 (see above)
            _log.exception("%s: %s failed", request.peer.address, function.__qualname__)
