"""What the layers above ask of the place where bytes live.

Paths are relative to a directory's root, with forward slashes; "" is the root itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

Buffer = bytearray | memoryview


class ReadableFile(Protocol):
    """One file opened for reading, with the size it had then; a deleted file stays readable."""

    @property
    def size(self) -> int:
        """Bytes the file had when it was opened; nothing beyond them is read."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from position `offset`, fewer only at the end."""
        ...

    def read_into(self, buffer: Buffer, offset: int) -> int:
        """Fill `buffer` from position `offset`; return the bytes read, fewer only at the end."""
        ...

    def view(self) -> memoryview:
        """Return the file's `size` bytes, read-only, mapped where the place can do so.

        A mapped file must not be cut while it is read; RocketMQ deletes files and never cuts them.
        """
        ...

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the (start, end) positions between `start` and `end` that are no holes, ascending.

        What is left out reads as zero bytes. The whole range where holes cannot be asked for.
        """
        ...

    def close(self) -> None:
        """Let go of the file. Views that are still in use stay valid."""
        ...


class Directory(Protocol):
    """A tree of files that is read, never changed.

    Every method raises `StoreError` for a path that leaves the tree, and for what the system
    refuses (permissions, input errors), with one line that names the file.
    """

    def describe(self, path: str = "") -> str:
        """Return the path as a person knows it, for messages."""
        ...

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, sorted; none where there is no such directory."""
        ...

    def is_directory(self, path: str) -> bool:
        """Say whether the path is a directory."""
        ...

    def exists(self, path: str) -> bool:
        """Say whether there is a file or directory of this path."""
        ...

    def size(self, path: str) -> int:
        """Return the bytes of a file."""
        ...

    def open(self, path: str) -> ReadableFile:
        """Open a regular file for reading."""
        ...

    def lock_holder(self, path: str) -> int | None:
        """Return the process that holds a POSIX lock on the file, None where no other one does.

        The id is 0 or less where the system does not tell it (another machine or container).
        """
        ...


class WritableFile(ReadableFile, Protocol):
    """One file, opened for reading and writing, of a fixed size unless it is appended to.

    What is written can be read at once, here and by others, and survives the end of the process;
    only what was written before a `sync` that returned survives the end of the machine.
    `view` shows later writes too.
    """

    def write(self, offset: int, data: bytes | Buffer) -> None:
        """Put bytes at a position inside of the file.

        Raises:
            DiskError: no room, or the disk failed; some of the bytes may have been written.
        """
        ...

    def append(self, data: bytes | Buffer) -> None:
        """Put bytes after the file's `size`, which grows by them.

        A mapping or view from before has the old size. After an error `size` is as before; the next
        append overwrites what may lie after it.

        Raises:
            DiskError: no room, or the disk failed; some of the bytes may have been written.
        """
        ...

    def truncate(self, size: int) -> None:
        """Cut the file, or lengthen it with zero bytes. Nobody may have it mapped beyond `size`.

        The file stays open; after an error it has its old size.

        Raises:
            DiskError: the system refused it.
        """
        ...

    def mapping(self) -> memoryview:
        """Return the file's `size` bytes, writable.

        Bytes may be changed only where `reserve` gave room, and every change is to be followed by
        `written`, before anything else is done with the directory.
        """
        ...

    def reserve(self, offset: int, length: int) -> None:
        """Make sure that the disk has room for these bytes: changing the mapping cannot fail.

        Raises:
            DiskError: there is none.
        """
        ...

    def written(self, offset: int, length: int) -> None:
        """Note that bytes of the mapping between these positions were changed."""
        ...

    def sync(self) -> None:
        """Return once everything written before the call is on the disk. May run in any thread.

        Raises:
            SyncError: the disk failed, or as `check_linked`; what was written since the last sync
                may be lost, and a later success does not say otherwise.
        """
        ...

    def check_linked(self) -> None:
        """Make sure that the file's path still leads to this file. May run in any thread.

        A file that its own directory removed or replaced (`OwnedDirectory`) passes.

        Raises:
            SyncError: somebody else removed, moved or replaced it: what is written goes nowhere.
        """
        ...


class DiskUsage(NamedTuple):
    """Room on the disk that holds a directory, in bytes."""

    total: int
    free: int
    """What this process may still use."""

    @property
    def used_ratio(self) -> float:
        """Share of the disk in use, 0 … 1, as `df` and RocketMQ's retention count it."""
        return 1 - self.free / self.total if self.total > 0 else 0.0


class OwnedDirectory(Directory, Protocol):
    """A tree of files that this process alone changes.

    A name that was made, replaced or removed is certain to be so after the end of the machine only
    once its directory was synced; the names in between may survive in any combination.

    Every method raises `DiskError` for what the system refuses.
    """

    def own(self, name: str) -> AbstractContextManager[object]:
        """Hold the lock file `name` (made where there is none) while the block runs.

        Raises:
            StoreError: another process holds it.
        """
        ...

    def create(self, path: str, size: int) -> WritableFile:
        """Make a file of `size` zero bytes, without taking the room for them; its directory exists.

        A file of that name is emptied first.
        """
        ...

    def open_writable(self, path: str) -> WritableFile:
        """Open a file that exists."""
        ...

    def truncate(self, path: str, size: int) -> None:
        """Cut a file, or lengthen it with zero bytes. Nobody may have it mapped beyond `size`."""
        ...

    def make_directory(self, path: str) -> None:
        """Make one directory in one that exists; fine if it is there already."""
        ...

    def replace(self, source: str, target: str) -> None:
        """Rename a file or directory in one step; a file of the target's name goes."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file; fine if it is gone. Who has it open can still read it."""
        ...

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory; fine if it is gone."""
        ...

    def sync_directory(self, path: str) -> None:
        """Return once the names in a directory are on the disk.

        Raises:
            SyncError: the disk failed, now or at any sync of this directory before.
            DiskError: the directory cannot be opened; the same call may succeed later.
        """
        ...

    def modified(self, path: str) -> int:
        """Return when a file was last written, in milliseconds since 1970."""
        ...

    def usage(self) -> DiskUsage:
        """Return the room on the disk that holds the tree."""
        ...
