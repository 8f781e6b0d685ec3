"""The lock that decides which process may write a store directory.

RocketMQ holds one while it runs (`DefaultMessageStore.start`: a POSIX write lock on the first byte
of `lock`), and Kafka one on all of `.lock`. Here it is a lock of the open file description (Linux).
It conflicts with POSIX locks, but persists when the process opens and closes the file again, as a
copy of the directory does, and when a child that inherited the descriptor ends.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from struct import Struct
from threading import RLock
from typing import Self

from mqlake.errors import StoreError
from mqlake.storage.fork_guard import ForkGuard

LOCK_NAME = "lock"

_OWNED_BYTE = 0
_NAMING_BYTE = 1
"""Carries a POSIX lock that excludes nobody: only of such a lock the system reports the process."""

# `struct flock`: type, whence, start, length, process on Linux. Other systems use another order.
_FLOCK = Struct("hhqqi") if sys.platform == "linux" else Struct("qqihh")
_SET_LOCK: int | None = getattr(fcntl, "F_OFD_SETLK", None)
_IN_USE = (errno.EAGAIN, errno.EACCES)
_MOST_ATTEMPTS = 10

# The locks that this process holds, by device and inode of the lock file.
_held: dict[tuple[int, int], OwnerLock] = {}
# A forked child must find a descriptor here that it has inherited.
_changing = RLock()
os.register_at_fork(
    before=_changing.acquire,
    after_in_parent=_changing.release,
    after_in_child=_changing.release,
)


def holder(path: Path) -> int | None:
    """Return the id of another process that holds a lock on the file, or None.

    The file is not changed. The id is 0 or less if the system does not report it.

    Raises:
        OSError: the file cannot be opened.
    """
    # Opening and closing a file that this process holds would drop its POSIX lock.
    if not path.exists() or _identity(path.stat()) in _held:
        return None
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return _ask(descriptor)
    finally:
        os.close(descriptor)


def _ask(descriptor: int) -> int | None:
    owner = _locker(descriptor, _OWNED_BYTE, 0)
    if owner is None or owner > 0:
        return owner
    # For a lock of an open file description, the system reports no process.
    return _locker(descriptor, _NAMING_BYTE, 1) or owner


def _locker(descriptor: int, start: int, length: int) -> int | None:
    """Return the holder of a lock that conflicts with a write lock on `length` bytes (0: all)."""
    if sys.platform == "linux":
        query = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
        kind, _, _, _, process = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, query))
    else:
        query = _FLOCK.pack(start, length, 0, fcntl.F_WRLCK, os.SEEK_SET)
        _, _, process, kind, _ = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, query))
    return None if kind == fcntl.F_UNLCK else process


class OwnerLock:
    """Own a store directory while the block runs; the lock file is created if missing.

    A child forked meanwhile does not own it: the lock ends when the parent releases it.

    Raises:
        StoreError: another process owns the directory, or the lock file cannot be opened.
    """

    def __init__(self, store: Path, name: str = LOCK_NAME) -> None:
        self._store, self._path = store, store / name
        self._descriptors: list[int] = []
        self._identity = (-1, -1)
        self._guard: ForkGuard | None = None

    def __enter__(self) -> Self:
        try:
            with _changing:
                self._take()
                self._guard = ForkGuard(self._store, self.let_go)
        except OSError as error:
            raise StoreError(f"{self._path}: {error.strerror}") from error
        return self

    def __exit__(self, *failure: object) -> None:
        self.let_go()

    @property
    def is_child(self) -> bool:
        """Return whether this process is a child that was forked from the owner."""
        return self._guard is not None and self._guard.is_child

    def check(self) -> None:
        """Raise in a forked child of the owner; do nothing elsewhere, also after the block.

        Raises:
            StoreError: this process is such a child.
        """
        if self._guard is not None:
            self._guard.check()

    def let_go(self) -> None:
        """Close the lock file; the lock ends with its last descriptor."""
        with _changing:
            if _held.get(self._identity) is self:
                del _held[self._identity]
            while self._descriptors:
                os.close(self._descriptors.pop())

    def _take(self) -> None:
        for _ in range(_MOST_ATTEMPTS):
            if self._path.exists() and _identity(self._path.stat()) in _held:
                raise _taken(self._path, os.getpid())
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            self._descriptors.append(descriptor)
            self._identity = _identity(os.fstat(descriptor))
            try:
                self._lock(descriptor)
                if self._is_in_place():
                    _held[self._identity] = self
                    return
            except BaseException:
                self.let_go()
                raise
            # Another process has removed or replaced the file meanwhile: the lock excludes nobody.
            self.let_go()
        raise StoreError(f"{self._path}: other processes keep replacing this file; stop them first")

    def _lock(self, descriptor: int) -> None:
        if (owner := _ask(descriptor)) is not None:
            raise _taken(self._path, owner)
        try:
            if not _lock_description(descriptor):
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _OWNED_BYTE)
                self._lock_directory()
        except OSError as error:
            if error.errno not in _IN_USE:
                raise
            raise _taken(self._path, _ask(descriptor) or 0) from None
        with suppress(OSError):
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _NAMING_BYTE)

    def _lock_directory(self) -> None:
        # If a process copies the directory, it drops its own POSIX lock. This lock stays, and
        # excludes at least others that request it. Not every file system supports it.
        descriptor = os.open(self._store, os.O_RDONLY | os.O_CLOEXEC)
        self._descriptors.append(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _IN_USE:
                raise

    def _is_in_place(self) -> bool:
        try:
            return _identity(self._path.stat()) == self._identity
        except FileNotFoundError:
            return False


@contextmanager
def directory_lock(directory: Path) -> Generator[None]:
    """Lock an existing directory itself, without a file in it, while the block runs.

    On file systems without such locks, nobody is excluded.

    Raises:
        StoreError: somebody else has it locked, or it cannot be opened.
    """
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError(f"{directory}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _IN_USE:
                raise StoreError(f"{directory}: somebody else has this directory locked") from None
        yield
    finally:
        os.close(descriptor)


def _lock_description(descriptor: int) -> bool:
    """Lock for the open file description; return False if the system has no such locks.

    Raises:
        OSError: another process has it locked.
    """
    if _SET_LOCK is None:
        return False
    try:
        lock = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, _OWNED_BYTE, 1, 0)
        fcntl.fcntl(descriptor, _SET_LOCK, lock)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return False
    return True


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _taken(path: Path, owner: int) -> StoreError:
    who = f"process {owner}" if owner > 0 else "another process"
    return StoreError(f"{path}: {who} owns this store; stop it first, or use another directory")
