"""The interface of storage: what the layers above need from files and directories.

Paths are relative to a directory's root, with forward slashes; "" is the root itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

Buffer = bytearray | memoryview


class ReadableFile(Protocol):
    """One file opened for reading, with its size at that time; a deleted file stays readable."""

    @property
    def size(self) -> int:
        """Bytes that the file had when it was opened; nothing beyond them is read."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from position `offset`, fewer only at the end."""
        ...

    def read_into(self, buffer: Buffer, offset: int) -> int:
        """Fill `buffer` from position `offset`; return the bytes read, fewer only at the end."""
        ...

    def view(self) -> memoryview:
        """Return the file's `size` bytes, read-only, mapped if the storage supports it.

        A mapped file must not be cut while it is read. RocketMQ deletes files and never cuts them.
        """
        ...

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges between `start` and `end` that contain data, not holes, ascending.

        The rest reads as zero bytes. If the storage cannot report holes, yield the whole range.
        """
        ...

    def close(self) -> None:
        """Release the file. Views that are still in use stay valid."""
        ...


class Directory(Protocol):
    """A tree of files for reading.

    Every method raises `StoreError` for a path that leaves the tree, and for the system's errors
    (permissions, input errors), with one line that names the file.
    """

    def describe(self, path: str = "") -> str:
        """Return the path as users know it, for messages."""
        ...

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, sorted; empty if it does not exist."""
        ...

    def is_directory(self, path: str) -> bool:
        """Return whether the path is a directory."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether a file or directory has this path."""
        ...

    def size(self, path: str) -> int:
        """Return the bytes of a file."""
        ...

    def open(self, path: str) -> ReadableFile:
        """Open a regular file for reading."""
        ...

    def lock_holder(self, path: str) -> int | None:
        """Return the process that holds a POSIX lock on the file, or None without another one.

        The id is 0 or less if the system does not report it (another machine or container).
        """
        ...


class WritableFile(ReadableFile, Protocol):
    """One file, opened for reading and writing, of a fixed size unless it is appended to.

    Written bytes can be read at once, here and by others, and survive a process crash. Only what
    was written before a `sync` that returned survives a power loss. `view` shows later writes,
    too.

    Attributes:
        is_watched: whether `written` does anything. Otherwise, it need not be called.
    """

    is_watched: bool

    def write(self, offset: int, data: bytes | Buffer) -> None:
        """Write bytes at a position inside the file.

        Raises:
            DiskError: the disk is full or failed; some of the bytes may have been written.
        """
        ...

    def append(self, data: bytes | Buffer) -> None:
        """Write bytes after the file's `size`, which grows by them.

        An earlier mapping or view keeps the old size. An error does not change `size`; the next
        append overwrites what may be after it.

        Raises:
            DiskError: the disk is full or failed; some of the bytes may have been written.
        """
        ...

    def truncate(self, size: int) -> None:
        """Cut the file, or extend it with zero bytes. Nobody may have it mapped beyond `size`.

        The file stays open. After an error it has its old size.

        Raises:
            DiskError: the system refused it.
        """
        ...

    def mapping(self) -> memoryview:
        """Return the file's `size` bytes, writable.

        Only bytes that `reserve` reserved may be changed. Call `written` after every change, before
        any other use of the directory.
        """
        ...

    def reserve(self, offset: int, length: int) -> None:
        """Reserve disk space for these bytes, so that changing the mapping cannot fail.

        Raises:
            DiskError: the disk is full.
        """
        ...

    def written(self, offset: int, length: int) -> None:
        """Report that bytes of the mapping between these positions were changed."""
        ...

    def sync(self) -> None:
        """Return once everything written before the call is durable. May run in any thread.

        Raises:
            SyncError: the disk failed, or `check_linked` would raise. What was written since the
                last sync may be lost, and a later success does not change that.
        """
        ...

    def check_linked(self) -> None:
        """Check that the file's path still leads to this file. May run in any thread.

        A file that its own directory removed or replaced (`OwnedDirectory`) passes the check.

        Raises:
            SyncError: another process removed, moved or replaced it, so that writes are lost.
        """
        ...


class DiskUsage(NamedTuple):
    """Space on the disk that holds a directory, in bytes."""

    total: int
    free: int
    """Bytes that this process may still use."""


class OwnedDirectory(Directory, Protocol):
    """A tree of files that only this process changes.

    A name that was created, replaced or removed is durable only after its directory was synced.
    Before, a power loss may keep any combination of the changes.

    Every method raises `DiskError` for the system's errors.
    """

    def own(self, name: str) -> AbstractContextManager[object]:
        """Hold the lock file `name` (created if missing) while the block runs.

        Raises:
            StoreError: another process holds it.
        """
        ...

    def create(self, path: str, size: int) -> WritableFile:
        """Create a file of `size` zero bytes, without reserving space; its directory must exist.

        An existing file of that name is emptied first.
        """
        ...

    def open_writable(self, path: str) -> WritableFile:
        """Open an existing file."""
        ...

    def write_at(self, path: str, size: int, offset: int, data: bytes | Buffer) -> bool:
        """Write bytes at a position inside an existing file, which is not kept open.

        Returns:
            False if the file does not have `size` bytes; nothing was written.
        """
        ...

    def truncate(self, path: str, size: int) -> None:
        """Cut a file, or extend it with zero bytes. Nobody may have it mapped beyond `size`."""
        ...

    def make_directory(self, path: str) -> None:
        """Create a directory in an existing one; do nothing if it exists already."""
        ...

    def replace(self, source: str, target: str) -> None:
        """Rename a file or directory atomically; a file with the target's name is replaced."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file if it exists. Those who have it open can still read it."""
        ...

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory if it exists."""
        ...

    def sync_directory(self, path: str) -> None:
        """Return once the names in a directory are durable.

        Raises:
            SyncError: the disk failed, now or in an earlier sync of this directory.
            DiskError: the directory cannot be opened; the same call may succeed later.
        """
        ...

    def sync_together(self, paths: Sequence[str]) -> list[str]:
        """Make many files and directories durable by one call, if the system can.

        May run in any thread.

        Returns:
            The paths that must be synced one by one, perhaps all: see `FileSystemSync.sync`.
        """
        ...

    def modified(self, path: str) -> int:
        """Return when a file was last written, in milliseconds since 1970."""
        ...

    def usage(self) -> DiskUsage:
        """Return the space on the disk that holds the tree."""
        ...
