"""What a client allows to be sent, and what waits for that."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Final

from mqlake.grpc.http2.frames import (
    DATA,
    FIRST_WINDOW,
    HEAD,
    LARGEST_WINDOW,
    SMALLEST_FRAME_LIMIT,
    ErrorCode,
    Http2Error,
)

LARGEST_FRAME: Final = 65_536
"""Bytes of a DATA frame, even if the client allows more: other streams have their turn then."""


class StreamOutput:
    """What one stream may send, and what it has yet to send.

    Attributes:
        number: the stream.
        window: bytes that it may send.
        waiting: bytes that wait.
        moved: when some of them were last sent, or began to wait.
        last: the frame that ends the stream, once nothing more follows what waits.
    """

    __slots__ = ("last", "moved", "number", "parts", "waiting", "window")

    def __init__(self, number: int, window: int) -> None:
        self.number, self.window = number, window
        self.parts: deque[memoryview] | None = None
        self.waiting, self.moved = 0, 0.0
        self.last = b""

    @property
    def may_send(self) -> bool:
        """Return whether bytes wait that the window of this stream allows."""
        return self.waiting > 0 and self.window > 0

    def add(self, data: bytes, now: float) -> None:
        """Add bytes that wait."""
        if self.parts is None:
            self.parts = deque()
        if not self.waiting:
            self.moved = now
        self.parts.append(memoryview(data))
        self.waiting += len(data)

    def finish(self, last: bytes) -> None:
        """Set the frame that ends the stream."""
        self.last = last

    def take(self, most: int, now: float) -> list[bytes | memoryview]:
        """Return a DATA frame of at most so many bytes."""
        self.moved = now
        size = min(self.waiting, most)
        found: list[bytes | memoryview] = [HEAD.pack(size << 8 | DATA, 0, self.number)]
        self.waiting -= size
        self.window -= size
        parts = self.parts
        while size and parts:
            part = parts[0]
            if len(part) <= size:
                found.append(parts.popleft())
                size -= len(part)
            else:
                found.append(part[:size])
                parts[0] = part[size:]
                size = 0
        return found

    def spend(self, size: int) -> None:
        """Count bytes that are sent at once."""
        self.window -= size

    def clear(self) -> int:
        """Forget what waits; return how many bytes that were."""
        dropped, self.waiting, self.parts = self.waiting, 0, None
        return dropped

    def widen(self, size: int) -> bool:
        """Add to the window; return whether it is still allowed.

        Args:
            size: negative if a setting makes it smaller.
        """
        self.window += size
        return self.window <= LARGEST_WINDOW


class SendWindows:
    """The windows of one connection, and the streams that wait for them.

    Attributes:
        window: bytes that all streams together may send.
        first_window: bytes that a new stream may send.
        largest: bytes of a DATA frame.
        waiting: the bytes that wait on all streams.
        began, moved: when any began to wait, and when some were last sent.
    """

    def __init__(self) -> None:
        self.window = self.first_window = FIRST_WINDOW
        self.largest = SMALLEST_FRAME_LIMIT
        self.waiting = 0
        self.began = self.moved = 0.0
        self._ready = OrderedDict[int, StreamOutput]()

    def takes_at_once(self, size: int, output: StreamOutput) -> bool:
        """Return whether a DATA frame may be sent before anything that waits; count it if so."""
        if size > self.window or size > self.largest or size > output.window or output.waiting:
            return False
        self.window -= size
        output.spend(size)
        return True

    def add(self, output: StreamOutput, data: bytes, now: float) -> None:
        """Send bytes when the windows allow it."""
        if not self.waiting:
            self.began = self.moved = now
        output.add(data, now)
        self.waiting += len(data)
        self.resume(output)

    def resume(self, output: StreamOutput) -> None:
        """Let a stream have its turns if it may send something."""
        if output.may_send:
            self._ready[output.number] = output

    def drop(self, output: StreamOutput) -> None:
        """Forget what waits on a stream."""
        self.waiting -= output.clear()
        self._ready.pop(output.number, None)

    def stop(self) -> None:
        """Send nothing more of what waits."""
        self._ready.clear()
        self.window = 0

    def widen(self, size: int) -> None:
        """Add to the window of the connection.

        Raises:
            Http2Error: it would become larger than allowed.
        """
        self.window += size
        if self.window > LARGEST_WINDOW:
            raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, f"a window of {self.window} bytes")

    def set_largest(self, size: int) -> None:
        """Set the length of frames that the client accepts."""
        self.largest = min(size, LARGEST_FRAME)

    def set_first_window(self, size: int) -> int:
        """Set the window of new streams; return by how much it grew."""
        grown = size - self.first_window
        self.first_window = size
        return grown

    def take(self, most: int, now: float) -> tuple[list[bytes | memoryview], list[int]]:
        """Return frames that may be sent now, one stream after the other, and their streams.

        Args:
            most: bytes of data after which no more is taken.
        """
        found: list[bytes | memoryview] = []
        moved: dict[int, None] = {}
        while self._ready and most > 0 and self.window > 0:
            output = self._ready.popitem(last=False)[1]
            size = min(output.waiting, self.window, self.largest, output.window)
            if size <= 0:  # A setting has made its window smaller.
                continue
            found += output.take(size, now)
            self.window -= size
            self.waiting -= size
            most -= size
            moved[output.number] = None
            if not output.waiting and output.last:
                found.append(output.last)
            self.resume(output)
            self.moved = now
        return found, list(moved)
