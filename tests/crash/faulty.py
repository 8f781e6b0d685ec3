"""A disk that refuses, once or from some moment on."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import Enum
from typing import TypeVar

from mqlake.errors import DiskError, SyncError
from mqlake.storage.protocol import Buffer, DiskUsage
from tests.crash.disk import RecordedDisk, RecordedFile
from tests.crash.trace import Sync, SyncNames

T = TypeVar("T")


class Fault(Enum):
    """What goes wrong, at which operations: reason, their kinds, and whether it stays so."""

    INPUT_OUTPUT = errno.EIO, "change room make name sync names", False
    INPUT_OUTPUT_FOR_EVER = errno.EIO, "change room make name sync names", True
    FULL = errno.ENOSPC, "change room make", False
    FULL_FOR_EVER = errno.ENOSPC, "change room make", True
    SHORT_WRITE = errno.ENOSPC, "change", False
    NO_INODE_FOR_EVER = errno.ENOSPC, "make", True
    SYNC_ONCE = errno.EIO, "sync names", False
    SYNC_FOR_EVER = errno.EIO, "sync names", True
    NO_DESCRIPTOR = errno.EMFILE, "make open names list lock", False
    NO_DESCRIPTOR_FOR_EVER = errno.EMFILE, "make open names list lock", True
    NO_MEMORY = errno.ENOMEM, "map", False
    NO_MEMORY_FOR_EVER = errno.ENOMEM, "map", True
    READ = errno.EIO, "read look list", False
    READ_FOR_EVER = errno.EIO, "read look list", True

    def __init__(self, reason: int, kinds: str, for_ever: bool) -> None:
        self.reason, self.kinds, self.for_ever = reason, frozenset(kinds.split()), for_ever


class FaultyDisk(RecordedDisk):
    """A recorded disk with one fault, at the `at`-th of the operations that it concerns.

    Attributes:
        operations: how many there were.
        counted: how many operations of each kind there were, of any fault.
        has_failed: whether the fault has come.
    """

    def __init__(self, fault: Fault, at: int, clock: object = None) -> None:
        super().__init__(None, clock)
        self._fault, self._at = fault, at
        self._failed_names: dict[str, SyncError] = {}
        self.operations = 0
        self.counted: Counter[str] = Counter()
        self.has_failed = False

    def mend(self) -> None:
        """Have no more faults."""
        self._at = -1
        self._fault = Fault.INPUT_OUTPUT

    def fail_next(self, fault: Fault) -> None:
        """Let the next operation of a fault's kinds fail."""
        self._fault, self._at = fault, self.operations + 1

    def fails(self, kind: str) -> bool:
        """Count an operation; say whether it fails."""
        self.counted[kind] += 1
        if kind not in self._fault.kinds:
            return False
        self.operations += 1
        fails = self.operations == self._at
        if self._fault.for_ever:
            fails = 0 < self._at <= self.operations
        self.has_failed |= fails
        return fails

    @property
    def writes_half(self) -> bool:
        """Whether a write that fails has written something."""
        return self._fault is Fault.SHORT_WRITE

    def error(self, path: str) -> DiskError:
        """Return what the system says."""
        return DiskError(f"disk:{path}: {os.strerror(self._fault.reason)}", self._fault.reason)

    def sync_error(self, path: str) -> SyncError:
        """Return what the system says of a sync."""
        return SyncError(f"disk:{path}: {os.strerror(self._fault.reason)}", self._fault.reason)

    def try_to(self, kind: str, path: str, act: Callable[[], T]) -> T:
        """Do it, or fail."""
        if self.fails(kind):
            raise self.error(path)
        return act()

    @contextmanager
    def own(self, name: str) -> Generator[None]:
        if self.fails("lock"):
            raise self.error(name)
        with super().own(name):
            yield

    def names(self, path: str) -> list[str]:
        return self.try_to("list", path, lambda: super(FaultyDisk, self).names(path))

    def is_directory(self, path: str) -> bool:
        return self.try_to("look", path, lambda: super(FaultyDisk, self).is_directory(path))

    def exists(self, path: str) -> bool:
        return self.try_to("look", path, lambda: super(FaultyDisk, self).exists(path))

    def size(self, path: str) -> int:
        return self.try_to("look", path, lambda: super(FaultyDisk, self).size(path))

    def modified(self, path: str) -> int:
        return self.try_to("look", path, lambda: super(FaultyDisk, self).modified(path))

    def usage(self) -> DiskUsage:
        return self.try_to("look", "", lambda: super(FaultyDisk, self).usage())

    def open(self, path: str) -> RecordedFile:
        file = self.try_to("open", path, lambda: super(FaultyDisk, self).open(path))
        return FaultyFile(self, file, path, writable=False)

    def open_writable(self, path: str) -> RecordedFile:
        file = self.try_to("open", path, lambda: super(FaultyDisk, self).open_writable(path))
        return FaultyFile(self, file, path)

    def create(self, path: str, size: int) -> RecordedFile:
        file = self.try_to("make", path, lambda: super(FaultyDisk, self).create(path, size))
        return FaultyFile(self, file, path)

    def truncate(self, path: str, size: int) -> None:
        self.try_to("change", path, lambda: super(FaultyDisk, self).truncate(path, size))

    def make_directory(self, path: str) -> None:
        self.try_to("make", path, lambda: super(FaultyDisk, self).make_directory(path))

    def replace(self, source: str, target: str) -> None:
        self.try_to("name", source, lambda: super(FaultyDisk, self).replace(source, target))

    def remove(self, path: str) -> None:
        self.try_to("name", path, lambda: super(FaultyDisk, self).remove(path))

    def remove_directory(self, path: str) -> None:
        self.try_to("name", path, lambda: super(FaultyDisk, self).remove_directory(path))

    def sync_directory(self, path: str) -> None:
        if path in self._failed_names:  # for good, as with a `LocalOwnedDirectory`
            raise self._failed_names[path]
        if self.fails("names"):
            if self._fault.reason == errno.EMFILE:
                raise self.error(path)  # the disk was not even asked
            self.record(SyncNames(self._folder(path).number, failed=True))
            self._failed_names[path] = self.sync_error(path)
            raise self._failed_names[path]
        super().sync_directory(path)


class FaultyFile(RecordedFile):
    """A file of such a disk."""

    def __init__(
        self, disk: FaultyDisk, file: RecordedFile, path: str, *, writable: bool = True
    ) -> None:
        super().__init__(disk, file._node, path, writable=writable)
        self._faulty = disk
        self._is_mapped = False
        self._failure: SyncError | None = None

    def read(self, offset: int, length: int) -> bytes:
        if self._faulty.fails("read"):
            raise self._faulty.error(self._path)
        return super().read(offset, length)

    def view(self) -> memoryview:
        self._map()
        return super().view()

    def mapping(self) -> memoryview:
        self._map()
        return super().mapping()

    def _map(self) -> None:
        # As a `LocalOwnedFile`: mapped once, and mapped again only after a failure.
        if not self._is_mapped and self._faulty.fails("map"):
            raise self._faulty.error(self._path)
        self._is_mapped = True

    def write(self, offset: int, data: bytes | Buffer) -> None:
        if self._faulty.fails("change"):
            if self._faulty.writes_half:
                super().write(offset, bytes(data)[: len(data) // 2])
            raise self._faulty.error(self._path)
        super().write(offset, data)

    def append(self, data: bytes | Buffer) -> None:
        if self._faulty.fails("change"):
            if self._faulty.writes_half:
                size = self._size
                super().append(bytes(data)[: len(data) // 2])
                self._size = size
            raise self._faulty.error(self._path)
        super().append(data)

    def truncate(self, size: int) -> None:
        if self._faulty.fails("change"):
            raise self._faulty.error(self._path)
        super().truncate(size)
        self._is_mapped = False

    def reserve(self, offset: int, length: int) -> None:
        if length > 0 and self._faulty.fails("room"):
            raise self._faulty.error(self._path)
        super().reserve(offset, length)

    def sync(self) -> None:
        # What failed once has failed for good, as with a `LocalOwnedFile`.
        if self._failure is None and self._faulty.fails("sync"):
            self._failure = self._faulty.sync_error(self._path)
            self._disk.record(Sync(self._node.number, failed=True))
        if self._failure is not None:
            raise self._failure
        super().sync()
