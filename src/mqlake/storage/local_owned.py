"""Files and directories of this machine that this process owns and writes."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Self
from weakref import WeakValueDictionary

from mqlake.errors import DiskError, StoreError, SyncError
from mqlake.storage.file_system_sync import FileSystemSync
from mqlake.storage.local import LocalDirectory, LocalFile
from mqlake.storage.owner_lock import OwnerLock
from mqlake.storage.protocol import Buffer, DiskUsage
from mqlake.storage.relative_path import check_path

# Space is reserved in steps of this many bytes, so that few writes need to reserve any.
_RESERVE_STEP = 16 << 20


class _Link:
    """A name that leads to a file, shared by all objects that have the file open under it."""

    __slots__ = ("__weakref__", "is_given_up")

    def __init__(self) -> None:
        self.is_given_up = False
        """Whether this process itself removed or replaced the name."""


class LocalOwnedFile(LocalFile):
    """A file that is written by position, at its end, or through its mapping.

    `sync` may run in any thread, beside everything but `close`; the rest is for one thread.
    """

    is_watched = False

    def __init__(self, path: Path, descriptor: int, status: os.stat_result, link: _Link) -> None:
        super().__init__(path, descriptor, status.st_size)
        self._identity, self._link = (status.st_dev, status.st_ino), link
        self._mapping: memoryview | None = None
        self._reserved: set[int] = set()
        self._syncing = Lock()
        self._failure: SyncError | None = None

    def write(self, offset: int, data: bytes | Buffer) -> None:
        source = memoryview(data).cast("B")
        if offset < 0 or offset + len(source) > self._size:
            raise StoreError(f"{self._path}: cannot write {len(source)} bytes at position {offset}")
        self._put(offset, source)

    def append(self, data: bytes | Buffer) -> None:
        source = memoryview(data).cast("B")
        self._put(self._size, source)
        self._size += len(source)
        self._mapping = None
        self._reserved.clear()

    def truncate(self, size: int) -> None:
        before = self._size
        # It shrinks before the file does: a sync in another thread compares the two.
        self._size = min(before, size)
        try:
            with disk_errors(self._path):
                os.ftruncate(self._descriptor, size)
        except DiskError:
            self._size = before
            raise
        self._size = size
        self._mapping = None
        self._reserved.clear()

    def _put(self, offset: int, source: memoryview) -> None:
        # Without a `with` of `disk_errors`, which takes as long as a small write.
        try:
            while source:
                done = os.pwrite(self._descriptor, source, offset)
                source, offset = source[done:], offset + done
        except OSError as error:
            raise disk_error(self._path, error) from error

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
            raise StoreError(
                f"{self._path}: there is no room for {length} bytes at position {offset}"
            )
        for step in range(offset // _RESERVE_STEP, (offset + length - 1) // _RESERVE_STEP + 1):
            if step not in self._reserved:
                self._take_room(step * _RESERVE_STEP)
                self._reserved.add(step)

    def _take_room(self, start: int) -> None:
        # Otherwise a full disk would end the process (SIGBUS) when a page is written.
        if hasattr(os, "posix_fallocate"):
            with disk_errors(self._path):
                length = min(_RESERVE_STEP, self._size - start)
                os.posix_fallocate(self._descriptor, start, length)

    def written(self, offset: int, length: int) -> None:
        pass

    def sync(self) -> None:
        # The system reports a failure once. Later and concurrent callers must get it, too.
        with self._syncing:
            if self._failure is None:
                try:
                    with sync_errors(self._path):
                        _sync_data(self._descriptor)
                    self.check_linked()
                except SyncError as error:
                    self._failure = error
            if self._failure is not None:
                raise SyncError(str(self._failure), self._failure.errno) from self._failure

    def check_linked(self) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            status = os.stat(self._path)  # noqa: PTH116 (at every sync: half the time)
        except (FileNotFoundError, NotADirectoryError):
            what = "removed"
        except OSError:  # The path cannot be read, which does not mean that the file is gone.
            return
        else:
            if (status.st_dev, status.st_ino) != self._identity:
                what = "replaced"
            elif status.st_size < self._size:
                what = "truncated"
            else:
                return
        if not self._link.is_given_up:
            raise SyncError(
                f"{self._path}: the file was {what} while it was in use, so that messages may be"
                " lost; restore it and start again",
                errno.ENOENT,
            )

    def close(self) -> None:
        self._mapping = None
        super().close()


class LocalOwnedDirectory(LocalDirectory):
    """A directory of this machine that this process changes.

    Args:
        file_mode: the permissions of files that are created; the process's umask takes some away.
    """

    def __init__(self, root: str | os.PathLike[str], *, file_mode: int = 0o644) -> None:
        super().__init__(root)
        self._file_mode = file_mode
        self._syncing = Lock()
        self._failures: dict[str, SyncError] = {}
        self._links: WeakValueDictionary[Path, _Link] = WeakValueDictionary()
        self._linking = Lock()
        self._lock: OwnerLock | None = None
        self._file_system = FileSystemSync(self._root)

    @classmethod
    def make(cls, root: str | os.PathLike[str]) -> Self:
        """Return a directory of this machine, created durably if missing.

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
        return self._owning(self._lock)

    @contextmanager
    def _owning(self, lock: OwnerLock) -> Generator[OwnerLock]:
        with lock, ExitStack() as opened:
            with disk_errors(self._root):
                opened.enter_context(self._file_system)
            yield lock

    def _changing(self, path: str) -> Path:
        """Return the path of a file or directory to change.

        Raises:
            StoreError: a parent process owns the directory.
        """
        if self._lock is not None:
            self._lock.check()
        return self._path(path)

    def create(self, path: str, size: int) -> LocalOwnedFile:
        full = self._changing(path)
        with disk_errors(full):
            flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            descriptor = os.open(full, flags, self._file_mode)
            try:
                os.ftruncate(descriptor, size)
            except BaseException:
                os.close(descriptor)
                with suppress(OSError):
                    full.unlink()  # Nobody must find a file of another size.
                raise
        return self._opened(full, descriptor)

    def open_writable(self, path: str) -> LocalOwnedFile:
        full = self._changing(path)
        with disk_errors(full):
            descriptor = os.open(full, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        return self._opened(full, descriptor)

    def write_at(self, path: str, size: int, offset: int, data: bytes | Buffer) -> bool:
        if self._lock is not None:
            self._lock.check()
        full = f"{self._root}/{check_path(path)}"
        source = memoryview(data).cast("B")
        try:
            descriptor = os.open(full, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                if os.fstat(descriptor).st_size != size:
                    return False
                while source:
                    done = os.pwrite(descriptor, source, offset)
                    source, offset = source[done:], offset + done
            finally:
                with suppress(OSError):  # Only a sync says whether bytes are on the disk.
                    os.close(descriptor)
        except OSError as error:
            raise disk_error(full, error) from error
        return True

    def _opened(self, path: Path, descriptor: int) -> LocalOwnedFile:
        with self._linking:
            link = self._links.get(path)
            if link is None:
                link = self._links[path] = _Link()
        return LocalOwnedFile(path, descriptor, os.fstat(descriptor), link)

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
        with disk_errors(old), self._giving_up(old), self._giving_up(new):
            old.replace(new)

    def remove(self, path: str) -> None:
        full = self._changing(path)
        with disk_errors(full), self._giving_up(full):
            full.unlink(missing_ok=True)

    @contextmanager
    def _giving_up(self, path: Path) -> Generator[None]:
        """Tell those who have a file open that this process removes its name on purpose.

        They must know before the name is gone: another thread may be syncing the file right now.
        """
        with self._linking:
            link = self._links.pop(path, None)
        if link is None:
            yield
            return
        link.is_given_up = True
        try:
            yield
        except BaseException:
            link.is_given_up = False
            with self._linking:
                self._links[path] = link
            raise

    def remove_directory(self, path: str) -> None:
        full = self._changing(path)
        with disk_errors(full):
            try:
                full.rmdir()
            except FileNotFoundError:
                return

    def sync_directory(self, path: str) -> None:
        # As for a file: names that a failure has lost are not part of the next sync.
        with self._syncing:
            if (failure := self._failures.get(path)) is None:
                failure = self._sync_names(path)
        if failure is not None:
            raise SyncError(str(failure), failure.errno) from failure

    def _sync_names(self, path: str) -> SyncError | None:
        full = self._path(path)
        with disk_errors(full):
            descriptor = os.open(full, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with sync_errors(full):
                os.fsync(descriptor)
        except SyncError as error:
            return self._failures.setdefault(path, error)
        finally:
            os.close(descriptor)
        return None

    def sync_together(self, paths: Sequence[str]) -> list[str]:
        left = self._file_system.sync(paths)
        failures = self._failures
        # A directory whose names a failure has lost keeps its failure.
        return left if not failures else [*left, *(path for path in paths if path in failures)]

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
    """Convert the system's errors to a `DiskError` that names the file.

    Raises:
        DiskError: one line with the file and the reason.
    """
    try:
        yield
    except OSError as error:
        raise disk_error(path, error) from error
    except ValueError as error:  # A mapping of more bytes than the file has.
        raise DiskError(f"{path}: {error}") from error


def disk_error(path: object, error: OSError) -> DiskError:
    """Return the error to raise for a system error: one line with the file and the reason."""
    return DiskError(_reason(path, error), error.errno or 0)


@contextmanager
def sync_errors(path: object) -> Generator[None]:
    """Convert a failed sync to a `SyncError`, which is final.

    Raises:
        SyncError: one line with the file and the reason.
    """
    try:
        yield
    except OSError as error:
        raise SyncError(_reason(path, error), error.errno or 0) from error


def _reason(path: object, error: OSError) -> str:
    hint = "; free some space" if error.errno == errno.ENOSPC else ""
    return f"{path}: {error.strerror or error}{hint}"
