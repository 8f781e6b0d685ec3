"""Lines of a file or of stdin, for a program that may be stopped while it waits for one."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Semaphore, Thread

_BLOCK = 1 << 16
_AHEAD = 4


class Lines:
    """Lines of a file descriptor, which a thread reads ahead.

    The thread is a daemon and uses no file object: neither delays the end of the program.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._loop = descriptor, asyncio.get_running_loop()
        self._blocks: asyncio.Queue[bytes | OSError] = asyncio.Queue()
        self._room = Semaphore(_AHEAD)
        self._lines: deque[bytes] = deque()
        self._rest, self._is_over = b"", False
        Thread(target=self._read, name="lines", daemon=True).start()

    async def next(self, most: int) -> list[bytes]:
        """Return the lines that have arrived, without their line ends; an empty list at the end of
        the file.

        Raises:
            OSError: the lines cannot be read.
        """
        while not self._lines and not self._is_over:
            block = await self._blocks.get()
            self._room.release()
            self._take(block)
        return [self._lines.popleft() for _ in range(min(most, len(self._lines)))]

    def _take(self, block: bytes | OSError) -> None:
        if isinstance(block, OSError):
            raise block
        if not block:
            self._is_over = True
            if self._rest:
                self._lines.append(self._rest)
            return
        *lines, self._rest = (self._rest + block).split(b"\n")
        self._lines.extend(line.removesuffix(b"\r") for line in lines)

    def _read(self) -> None:
        block: bytes | OSError = b" "
        while block and not isinstance(block, OSError):
            try:
                block = os.read(self._descriptor, _BLOCK)
            except OSError as error:
                block = error
            self._room.acquire()
            try:
                self._loop.call_soon_threadsafe(self._blocks.put_nowait, block)
            except RuntimeError:  # The loop is closed: the program ends.
                return


@contextmanager
def open_lines(path: Path | None) -> Generator[Lines]:
    """Yield the lines of a file, or of stdin if no file is named."""
    if path is None:
        yield Lines(sys.stdin.fileno())
        return
    with path.open("rb") as file:
        yield Lines(file.fileno())
