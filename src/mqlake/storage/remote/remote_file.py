"""A file on another machine, of which only the requested bytes are fetched."""

from __future__ import annotations

import mmap
import tempfile
import weakref
from collections.abc import Callable, Iterator
from threading import RLock

from mqlake.errors import StoreError
from mqlake.storage.protocol import Buffer, ReadableFile

Load = Callable[[int, int], None]
"""Fetches the bytes between two positions of a view, so that they can be read."""

_BLOCK = 16 << 10
"""Minimum bytes of a request."""

_AHEAD = 4 << 20
"""Maximum bytes of a request, while a file is read block after block."""

_CHUNK = 8 << 20
"""Bytes that `read_into` and `view` request at a time."""


class RemoteFile:
    """A file whose bytes are fetched by ranges.

    `view` fetches the whole file. `sparse_view` fetches nothing: its bytes are zeros until `load`
    has fetched them. Both are one mapping of a temporary file without a name on this machine's
    disk, so memory use does not grow with the fetched bytes.

    Args:
        name: the file's name in messages.
        ranges: returns up to `length` bytes from `offset`; called as ranges(offset, length).
        size: bytes of the file.
        stored: number of bytes, from the start, that are stored; the rest are zeros. All if None.
        close: releases the file.
    """

    def __init__(
        self,
        name: str,
        ranges: Callable[[int, int], bytes],
        size: int,
        stored: int | None = None,
        close: Callable[[], object] = lambda: None,
    ) -> None:
        self._name, self._ranges, self._size = name, ranges, size
        self._stored = size if stored is None else min(stored, size)
        self._view: memoryview | None = None
        self._mapped: mmap.mmap | None = None
        self._is_here = bytearray()
        self._next, self._ahead = -1, _BLOCK
        self._lock = RLock()
        self._close = weakref.finalize(self, close)

    @property
    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int) -> bytes:
        if offset < 0:
            raise StoreError(f"{self._name}: cannot read at position {offset}")
        length = max(0, min(length, self._size - offset))
        there = max(0, min(length, self._stored - offset))
        data = self._ranges(offset, there) if there else b""
        if len(data) < there:
            raise StoreError(
                f"{self._name}: only {len(data)} of {there} bytes at position {offset}: the "
                "file has become shorter since it was opened"
            )
        return data + bytes(length - there)

    def read_into(self, buffer: Buffer, offset: int) -> int:
        target, done = memoryview(buffer).cast("B"), 0
        while done < len(target):
            data = self.read(offset + done, min(_CHUNK, len(target) - done))
            if not data:
                break
            target[done : done + len(data)] = data
            done += len(data)
        return done

    def view(self) -> memoryview:
        view = self.sparse_view()
        for at in range(0, self._stored, _CHUNK):
            self.load(at, min(at + _CHUNK, self._stored))
        return view

    def sparse_view(self) -> memoryview:
        """Return the file's bytes: zeros, except those that `load` has fetched."""
        with self._lock:
            if self._view is None:
                if self._size == 0:
                    return memoryview(b"")
                self._mapped = self._map()
                self._is_here = bytearray(-(-self._stored // _BLOCK))
                self._view = memoryview(self._mapped).toreadonly()
            return self._view

    def _map(self) -> mmap.mmap:
        try:
            with tempfile.TemporaryFile() as local:
                local.truncate(self._size)
                return mmap.mmap(local.fileno(), self._size)
        except OSError as error:
            raise StoreError(
                f"{self._name}: cannot map {self._size} bytes of it through a temporary file "
                f"in {tempfile.gettempdir()}: {error.strerror or error}"
            ) from error

    def load(self, start: int, end: int) -> None:
        """Fetch the bytes of [start, end) into the view; faster if it continues the previous call.

        Raises:
            StoreError: they cannot be read.
        """
        self.sparse_view()
        with self._lock:
            block, last = max(0, start) // _BLOCK, -(-min(end, self._stored) // _BLOCK)
            while block < last:
                if self._is_here[block]:
                    block += 1
                else:
                    block = self._bring(block, last)

    def _bring(self, first: int, last: int) -> int:
        """Fetch blocks from the first on; return the first that is not fetched."""
        self._ahead = min(2 * self._ahead, _AHEAD) if first == self._next else _BLOCK
        most = first + max(1, min(_CHUNK // _BLOCK, max(last - first, self._ahead // _BLOCK)))
        here = self._is_here.find(1, first, most)
        following = min(here if here >= 0 else most, len(self._is_here))
        at, end = first * _BLOCK, min(following * _BLOCK, self._stored)
        data = self.read(at, end - at)
        assert self._mapped is not None
        if data.strip(b"\0"):  # Zeros need not be written: a hole reads as zeros.
            self._mapped[at:end] = data
        self._is_here[first:following] = b"\1" * (following - first)
        self._next = following
        return following

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        start, end = max(0, start), min(end, self._stored)
        if start < end:
            yield start, end

    def close(self) -> None:
        self._close()


def view_of(file: ReadableFile, start: int, end: int) -> memoryview:
    """Return a file's view, in which the bytes of [start, end) can be read."""
    if not isinstance(file, RemoteFile):
        return file.view()
    file.load(start, end)
    return file.sparse_view()


def lasting_view(file: ReadableFile) -> tuple[memoryview, Load]:
    """Return a file's view, and the function to call before bytes of it are read.

    The file is closed as soon as the view no longer needs it.
    """
    if isinstance(file, RemoteFile):
        return file.sparse_view(), file.load
    view = file.view()
    file.close()
    return view, all_is_here


def all_is_here(start: int, end: int) -> None:
    """Do nothing: the `Load` of a view that has all its bytes."""
