"""Files and directories of this machine that this process owns and writes."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Lock
from typing import Self

from mqlake.errors import DiskError, StoreError
from mqlake.storage.local import LocalDirectory, LocalFile
from mqlake.storage.owner_lock import OwnerLock
from mqlake.storage.protocol import Buffer, DiskUsage

# Room is taken in steps of so many bytes, so that few writes ask for any.
_RESERVE_STEP = 16 << 20


class LocalOwnedFile(LocalFile):
    """A file of fixed size, written by position or through its mapping.

    `sync` may run in any thread, beside everything but `close`; the rest is for one thread.
    """

    def __init__(self, path: Path, descriptor: int, size: int) -> None:
        super().__init__(path, descriptor, size)
        self._mapping: memoryview | None = None
        self._reserved: set[int] = set()
        self._syncing = Lock()
        self._failure: DiskError | None = None

    def write(self, offset: int, data: bytes | Buffer) -> None:
        source = memoryview(data).cast("B")
        if offset < 0 or offset + len(source) > self._size:
            raise StoreError(f"{self._path}: cannot write {len(source)} bytes at position {offset}")
        with disk_errors(self._path):
            while source:
                done = os.pwrite(self._descriptor, source, offset)
                source, offset = source[done:], offset + done

    def mapping(self) -> memoryview:
        if self._mapping is None:
            with disk_errors(self._path):
                mapped = mmap.mmap(self._descriptor, self._size) if self._size else bytearray()
            self._mapping = memoryview(mapped)
        return self._mapping

    def view(self) -> memoryview:
        return self.mapping().toreadonly()

    def reserve(self, offset: int, length: int) -> None:
        if length <= 0:
            return
        if offset < 0 or offset + length > self._size:
            raise StoreError(f"{self._path}: no room for {length} bytes at position {offset}")
        for step in range(offset // _RESERVE_STEP, (offset + length - 1) // _RESERVE_STEP + 1):
            if step not in self._reserved:
                self._take_room(step * _RESERVE_STEP)
                self._reserved.add(step)

    def _take_room(self, start: int) -> None:
        # Without it a full disk would end the process (SIGBUS) when a page is written.
        if hasattr(os, "posix_fallocate"):
            with disk_errors(self._path):
                length = min(_RESERVE_STEP, self._size - start)
                os.posix_fallocate(self._descriptor, start, length)

    def written(self, offset: int, length: int) -> None:
        pass

    def sync(self) -> None:
        # The system tells a failure once. Who comes later, or at the same time, must hear it too.
        with self._syncing:
            if self._failure is None:
                try:
                    with disk_errors(self._path):
                        _sync_data(self._descriptor)
                except DiskError as error:
                    self._failure = error
            if self._failure is not None:
                raise DiskError(str(self._failure), self._failure.errno) from self._failure

    def close(self) -> None:
        self._mapping = None
        super().close()


class LocalOwnedDirectory(LocalDirectory):
    """A directory of this machine that this process changes."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        super().__init__(root)
        self._syncing = Lock()
        self._failures: dict[str, DiskError] = {}
        self._lock: OwnerLock | None = None

    @classmethod
    def make(cls, root: str | os.PathLike[str]) -> Self:
        """Return a directory of this machine, made durably where there is none.

        Raises:
            DiskError: the system refused it.
        """
        path = Path(root).absolute()
        with disk_errors(path):
            missing = [path, *path.parents]
            missing = missing[: next(n for n, part in enumerate(missing) if part.exists())]
            for part in reversed(missing):
                part.mkdir(exist_ok=True)
                cls(part.parent).sync_directory("")
        return cls(path)

    def own(self, name: str) -> AbstractContextManager[object]:
        self._lock = OwnerLock(self._root, name)
        return self._lock

    def _changing(self, path: str) -> Path:
        """Return the path of what is to be changed.

        Raises:
            StoreError: a parent process owns the directory.
        """
        if self._lock is not None:
            self._lock.check()
        return self._path(path)

    def create(self, path: str, size: int) -> LocalOwnedFile:
        full = self._changing(path)
        with disk_errors(full):
            descriptor = os.open(full, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            try:
                os.ftruncate(descriptor, size)
            except BaseException:
                os.close(descriptor)
                raise
        return LocalOwnedFile(full, descriptor, size)

    def open_writable(self, path: str) -> LocalOwnedFile:
        full = self._changing(path)
        with disk_errors(full):
            descriptor = os.open(full, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        return LocalOwnedFile(full, descriptor, os.fstat(descriptor).st_size)

    def truncate(self, path: str, size: int) -> None:
        full = self._changing(path)
        with disk_errors(full):
            os.truncate(full, size)

    def make_directory(self, path: str) -> None:
        full = self._changing(path)
        with disk_errors(full):
            full.mkdir(exist_ok=True)

    def replace(self, source: str, target: str) -> None:
        old, new = self._changing(source), self._changing(target)
        with disk_errors(old):
            old.replace(new)

    def remove(self, path: str) -> None:
        full = self._changing(path)
        with disk_errors(full):
            full.unlink(missing_ok=True)

    def remove_directory(self, path: str) -> None:
        full = self._changing(path)
        with disk_errors(full):
            try:
                full.rmdir()
            except FileNotFoundError:
                return

    def sync_directory(self, path: str) -> None:
        # As with a file: the names that a failure has lost are not in what is synced next.
        with self._syncing:
            if (failure := self._failures.get(path)) is None:
                failure = self._sync_names(path)
        if failure is not None:
            raise DiskError(str(failure), failure.errno) from failure

    def _sync_names(self, path: str) -> DiskError | None:
        full = self._path(path)
        with disk_errors(full):
            descriptor = os.open(full, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with disk_errors(full):
                os.fsync(descriptor)
        except DiskError as error:
            return self._failures.setdefault(path, error)
        finally:
            os.close(descriptor)
        return None

    def modified(self, path: str) -> int:
        full = self._path(path)
        with disk_errors(full):
            return full.stat().st_mtime_ns // 1_000_000

    def usage(self) -> DiskUsage:
        with disk_errors(self._root):
            usage = shutil.disk_usage(self._root)
        return DiskUsage(usage.used + usage.free, usage.free)


def _sync_data(descriptor: int) -> None:
    getattr(os, "fdatasync", os.fsync)(descriptor)


@contextmanager
def disk_errors(path: object) -> Generator[None]:
    """Turn what the system refuses into a `DiskError` that names the file.

    Raises:
        DiskError: one line: the file and the reason.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        hint = "; free some room" if error.errno == errno.ENOSPC else ""
        raise DiskError(f"{path}: {reason}{hint}", error.errno or 0) from error
    except ValueError as error:  # a mapping of more bytes than the file has
        raise DiskError(f"{path}: {error}") from error
