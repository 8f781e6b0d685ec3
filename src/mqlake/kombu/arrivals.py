"""Events that have arrived on a connection and wait for the thread that drains them."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Generic, TypeVar

from mqlake.kombu.border import Hub

T = TypeVar("T")

_BYTES = 1 << 16


class WatchedQueue(Generic[T]):
    """A queue between two threads, which can be watched by a Celery worker's event loop."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[T] = SimpleQueue()
        self._hub: Hub | None = None
        self._sockets: tuple[socket.socket, socket.socket] | None = None

    def __len__(self) -> int:
        return self._queue.qsize()

    def put(self, arrival: T) -> None:
        """Add something, from any thread."""
        self._queue.put(arrival)
        self._notify()

    def get(self, timeout: float | None) -> T:
        """Return the first arrival; wait for one if necessary.

        Args:
            timeout: seconds to wait, None to wait forever.

        Raises:
            queue.Empty: nothing has arrived in time.
        """
        return self._queue.get(timeout != 0.0, timeout)

    def watch(self, hub: Hub, deliver: Callable[[T], object]) -> None:
        """Have an event loop call a function with all that arrives, in the loop's own thread."""
        self.unwatch(is_own=True)
        receiver, sender = socket.socketpair()
        receiver.setblocking(False)
        sender.setblocking(False)
        self._hub, self._sockets = hub, (receiver, sender)
        hub.add_reader(receiver.fileno(), self._on_readable, deliver)
        self._notify()

    def unwatch(self, *, is_own: bool) -> None:
        """Stop watching on the event loop.

        Args:
            is_own: whether this process called `watch`. A fork shares the loop's poller with its
                parent, and must not remove anything from it.
        """
        hub, sockets = self._hub, self._sockets
        self._hub = self._sockets = None
        if hub is None or sockets is None:
            return
        if is_own:
            hub.remove_reader(sockets[0].fileno())
        for each in sockets:
            each.close()

    def _notify(self) -> None:
        sockets = self._sockets
        if sockets is not None:
            # The pipe is full if the loop has been notified often enough, and closed if nobody
            # watches.
            with suppress(OSError):
                sockets[1].send(b"\0")

    def _on_readable(self, deliver: Callable[[T], object]) -> None:
        if self._sockets is not None:
            with suppress(BlockingIOError):
                self._sockets[0].recv(_BYTES)
        try:
            # Items that arrive meanwhile notify the loop again.
            for _ in range(len(self)):
                deliver(self._queue.get_nowait())
        finally:
            if len(self):
                self._notify()
