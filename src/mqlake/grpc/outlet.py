"""What one connection sends: frames, in one write for each round of the loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from mqlake.grpc.call import FinishedCall
from mqlake.grpc.http2 import frames
from mqlake.grpc.http2.sending import SendWindows, StreamOutput
from mqlake.grpc.limits import GrpcLimits
from mqlake.grpc.parsing import LargeMessages
from mqlake.grpc.status import GrpcError

_log: Final = logging.getLogger("mqlake.grpc")

_MUCH: Final = 1 << 18
"""Bytes that are written in one call."""
_PROGRESS: Final = 65_536
"""Bytes that must arrive before requests count as progressing."""


class Flushes:
    """Flushes what was sent on any connection once a round of the loop is over.

    Args:
        on_finished: called with each call that has ended.

    Attributes:
        large: parses large requests, of all connections together.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_finished: Callable[[FinishedCall], object] | None = None,
    ) -> None:
        self.loop, self.on_finished = loop, on_finished
        self.large = LargeMessages()
        self._waiting: list[Callable[[], object]] = []

    def add(self, flush: Callable[[], object]) -> None:
        """Call a function once this round of the loop is over."""
        if not self._waiting:
            self.loop.call_soon(self._flush)
        self._waiting.append(flush)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for flush in waiting:
            try:
                flush()
            except Exception as error:  # noqa: BLE001 (other connections must be written to)
                _log.error("a connection could not be written to", exc_info=error)


class Outlet:
    """Frames that wait to be written, what calls hold, and what the client allows.

    Args:
        flush: called at the end of a round of the loop in which something was sent.
        moved: called with the numbers of the streams whose data was sent.

    Attributes:
        windows: what the client allows to be sent.
        limits: what the client may do.
        size: bytes that wait to be written.
        partial: bytes of requests that have yet to be served.
        began, moved: when they began to be held, and when they last progressed.
        served: bytes of requests that are served, with their headers.
        lingering: handlers that run although their calls have ended.
        is_choked: whether the client has yet to read what was written.
        is_closed: whether nothing that is sent now would arrive.
    """

    def __init__(
        self,
        flushes: Flushes,
        limits: GrpcLimits,
        flush: Callable[[], object],
        moved: Callable[[list[int]], object],
    ) -> None:
        self.limits = limits
        self.windows = SendWindows()
        self.size = self.partial = self.served = self.lingering = 0
        self.began = self.moved = 0.0
        self._progress = 0
        self.is_choked = self.is_closed = False
        self._flushes, self._flush, self._moved = flushes, flush, moved
        self._frames: list[bytes | memoryview] = []
        self._is_serving = self._will_flush = False

    def write(self, data: bytes) -> None:
        """Send frames, together with everything else of this round of the loop."""
        if not self.is_closed:
            self._frames.append(data)
            self.size += len(data)
            if not self._is_serving:
                self._flush_later()

    def send_data(self, output: StreamOutput, data: bytes) -> None:
        """Send the content of DATA frames, as fast as the client allows."""
        if not self.is_closed:
            self.windows.add(output, data, self._flushes.loop.time())
            self._flush_later()

    def grant(self, number: int, size: int) -> None:
        """Let the client send more on a stream."""
        self.write(frames.window_update(number, size))

    def _flush_later(self) -> None:
        if not self._is_serving and not self._will_flush:
            self._will_flush = True
            self._flushes.add(self._flush)

    def begin_serving(self) -> None:
        """Leave it to the connection when to write from now on."""
        self._is_serving = True

    def end_serving(self) -> None:
        """Write at the end of each round of the loop from now on."""
        self._is_serving = False

    def take(self) -> bytes | memoryview:
        """Return what is to be written now; nothing if nothing may be."""
        self._will_flush = False
        if self.windows.waiting and self.size < _MUCH:
            found, moved = self.windows.take(_MUCH, self._flushes.loop.time())
            self._frames += found
            self._moved(moved)
        taken = self._frames
        self._frames, self.size = [], 0
        return taken[0] if len(taken) == 1 else b"".join(taken)

    def clear(self) -> None:
        """Forget what waits, and accept no more."""
        self.is_closed = True
        self._frames, self.size = [], 0

    def set_choked(self, value: bool) -> None:
        """Set whether the client has yet to read what was written."""
        self.is_choked = value

    # What calls hold

    def count_partial(self, size: int) -> None:
        """Count bytes of requests that have yet to be served, or are now (a negative number)."""
        if not self.partial:
            self.began = self.moved = self._flushes.loop.time()
            self._progress = 0
        self.partial += size
        if size > 0:
            self._progress += size
            if self._progress >= _PROGRESS:
                self.moved, self._progress = self._flushes.loop.time(), 0

    def count_served(self, size: int) -> None:
        """Count bytes of requests that are served, or no longer are (a negative number)."""
        self.served += size

    @property
    def large(self) -> LargeMessages:
        """Return what parses large requests."""
        return self._flushes.large

    def new_waiter(self) -> asyncio.Future[None]:
        """Return a future of this loop."""
        return self._flushes.loop.create_future()

    def note_lingering(self) -> None:
        """Count a handler that runs although its call has ended."""
        self.lingering += 1

    def end_lingering(self, task: asyncio.Future[Any]) -> None:
        """Note that such a handler has ended."""
        self.lingering -= 1
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, GrpcError):
            _log.error("a call that was cancelled failed", exc_info=error)

    def note_finished(self, finished: FinishedCall) -> None:
        """Report a call that has ended."""
        on_finished = self._flushes.on_finished
        if on_finished is not None:
            try:
                on_finished(finished)
            except Exception as error:  # noqa: BLE001 (the call itself has ended well)
                _log.error("the end of a call could not be noted", exc_info=error)


def wake(waiter: asyncio.Future[None] | None) -> None:
    """Let whoever waits for this continue."""
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
