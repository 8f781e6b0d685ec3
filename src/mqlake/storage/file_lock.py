"""A lock on a file that several processes edit by replacing it."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from mqlake.errors import StoreError
from mqlake.storage.clock import SystemClock
from mqlake.storage.local_owned import disk_errors

_PAUSE = 0.01
_IN_USE = (errno.EAGAIN, errno.EACCES)


@contextmanager
def locked(path: Path, patience: float) -> Generator[None]:
    """Hold an exclusive lock on a file while the block runs, if its file system has locks.

    Whoever edits the file within such a block finds all that others wrote within theirs. The lock
    is `flock`'s: it also excludes other blocks of this process.

    Args:
        patience: how long to wait for the lock, in seconds.

    Raises:
        DiskError: the file cannot be opened.
        StoreError: somebody else held the lock all that time.
    """
    clock = SystemClock()
    give_up = clock.monotonic() + patience
    while (descriptor := _try(path)) is None:
        if clock.monotonic() >= give_up:
            raise StoreError(f"{path}: another process has been changing this file; try again")
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        os.close(descriptor)


def _try(path: Path) -> int | None:
    """Return a descriptor that has the file locked, None if it is in use."""
    with disk_errors(path):
        descriptor = _open(path)
        try:
            if _lock(descriptor) and _is_in_place(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    return None


def _open(path: Path) -> int:
    # NFS locks only what is open for writing.
    with suppress(PermissionError):
        return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # Not every file system has locks; a broker that has its file for itself needs none.
        return error.errno not in _IN_USE
    return True


def _is_in_place(path: Path, descriptor: int) -> bool:
    """Return whether the path still leads to the file, which another process may have replaced."""
    there, opened = path.stat(), os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (opened.st_dev, opened.st_ino)
