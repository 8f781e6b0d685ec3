"""What the layers above ask of the place where bytes live.

Paths are relative to a directory's root, with forward slashes; "" is the root itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

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
