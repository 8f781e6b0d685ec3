"""Frames of one connection to bytes: they are joined, and written in one call."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from mqlake.remoting.greed import greed_of
from mqlake.remoting.stream.wire import Wire


class FrameWriter:
    """The frames that are to be written to the other side, and those who wait until it has read.

    The connection is choked while the other side has yet to read what was written: further data
    would only be held here.

    Args:
        wire: writes them.

    Attributes:
        size: bytes that are not written yet.
        is_choked: whether the other side has yet to read what was written.
        choked_at: loop time since when it has not; the last one if it has.
    """

    __slots__ = ("_callbacks", "_frames", "_wire", "choked_at", "is_choked", "size")

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._frames: list[bytes] = []
        self.size = 0
        self.is_choked = False
        self.choked_at = 0.0
        self._callbacks: deque[Callable[[], object]] = deque()

    def add(self, frame: bytes) -> bool:
        """Add a frame; return whether it is the first one."""
        is_first = not self.size
        self._frames.append(frame)
        self.size += len(frame)
        return is_first

    def add_rest(self, rest: bytes) -> bool:
        """Put the rest of a frame before all others, because the other side has its beginning.

        Returns:
            Whether there are no others.
        """
        is_first = not self.size
        self._frames.insert(0, rest)
        self.size += len(rest)
        return is_first

    def write(self) -> int:
        """Write all frames in one call; return their bytes."""
        frames, size = self._frames, self.size
        if not size:
            return 0
        data = frames[0] if len(frames) == 1 else b"".join(frames)
        frames.clear()
        self.size = 0
        self._wire.write(data)
        return size

    def clear(self) -> None:
        """Drop what is not written, and call nobody back."""
        self._frames.clear()
        self.size = 0
        self._callbacks.clear()

    # While the other side does not read

    def choke(self, now: float) -> None:
        """Note that the system accepts no more since a loop time."""
        self.is_choked, self.choked_at = True, now

    def unchoke(self) -> None:
        """Note that the system has accepted everything that was written."""
        self.is_choked = False

    def when_writable(self, callback: Callable[[], object]) -> None:
        """Call `callback` once the connection is no longer choked: at once if it is not."""
        if self.is_choked:
            self._callbacks.append(callback)
        elif self._wire.is_open:
            callback()

    def call_back(self) -> None:
        """Call those who wait, until the connection is choked again."""
        while self._callbacks and not self.is_choked:
            self._callbacks.popleft()()

    # Memory

    @property
    def unsent(self) -> int:
        """Bytes that wait for the other side to read."""
        return self.size + self._wire.unwritten

    @property
    def held(self) -> int:
        """Bytes of memory that are held."""
        return self.size + self._wire.unwritten if self.is_choked else self.size

    def greed(self, now: float, grace: float) -> float:
        """Return the greed of what has been waiting for the other side (`greed_of`)."""
        return greed_of(self.unsent, self.choked_at, now, grace) if self.is_choked else 0.0
