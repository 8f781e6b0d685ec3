"""The lock that says which process may write a store directory.

RocketMQ holds it while it runs (`DefaultMessageStore.start`: a POSIX write lock on the first byte
of `lock`), so a lock of the same kind keeps both from writing at once.
"""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path
from struct import Struct
from typing import Self

from mqlake.errors import StoreError

LOCK_NAME = "lock"

_LOCKED_BYTES = 1

# `struct flock`: type, whence, start, length, process on Linux; other systems order it otherwise.
_FLOCK = Struct("hhqqi") if sys.platform == "linux" else Struct("qqihh")

# Device and inode of the lock files that this process holds. POSIX drops a process's lock when the
# process closes any descriptor of the file, so these must not be opened to be asked.
_held: set[tuple[int, int]] = set()


def holder(path: Path) -> int | None:
    """Return the id of another process that holds a lock on the file, None where there is none.

    The file is not changed. The id is 0 or less where the system does not tell it.

    Raises:
        OSError: the file cannot be opened.
    """
    if not path.exists() or _identity(path) in _held:
        return None
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return _ask(descriptor)
    finally:
        os.close(descriptor)


def _ask(descriptor: int) -> int | None:
    # A write lock of the whole file (length 0) would conflict with any lock there is.
    if sys.platform == "linux":
        query = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, process = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, query))
    else:
        query = _FLOCK.pack(0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)
        _, _, process, kind, _ = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, query))
    return None if kind == fcntl.F_UNLCK else process


class OwnerLock:
    """Own a store directory while the block runs; makes the lock file where there is none.

    Raises:
        StoreError: another process owns the directory, or the lock file cannot be opened.
    """

    def __init__(self, store: Path, name: str = LOCK_NAME) -> None:
        self._path = store / name
        self._descriptor = -1

    def __enter__(self) -> Self:
        try:
            self._take()
        except OSError as error:
            raise StoreError(f"{self._path}: {error.strerror}") from error
        return self

    def _take(self) -> None:
        self._path.touch()
        if _identity(self._path) in _held:
            raise _taken(self._path, os.getpid())
        if (owner := holder(self._path)) is not None:
            raise _taken(self._path, owner)
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, _LOCKED_BYTES)
        except (BlockingIOError, PermissionError):
            os.close(self._descriptor)
            raise _taken(self._path, 0) from None
        self._identity = _identity(self._path)
        _held.add(self._identity)

    def __exit__(self, *failure: object) -> None:
        _held.discard(self._identity)
        os.close(self._descriptor)


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _taken(path: Path, owner: int) -> StoreError:
    who = f"process {owner}" if owner > 0 else "another process"
    return StoreError(f"{path}: {who} owns this store; stop it first, or write elsewhere")
