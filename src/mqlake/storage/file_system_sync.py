"""Sync everything on a file system by one call, instead of thousands of files one by one."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Self

_KNOWN: Final = frozenset({"ext4", "xfs"})
"""File systems on which `syncfs` waits for the bytes, and reports each that it could not write."""
_REPORTS_FAILURES: Final = (5, 8)
"""The first release of Linux whose `syncfs` reports them."""
_MOUNTS: Final = Path("/proc/self/mountinfo")


class FileSystemSync:
    """The file system of a directory, while the block runs.

    Args:
        root: the directory.
    """

    def __init__(self, root: Path) -> None:
        self._root, self._descriptor, self._device = root, -1, -1

    def __enter__(self) -> Self:
        # The system reports failures since this descriptor was opened: it is open before the first
        # byte is written.
        if _syncfs is not None:
            self._descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            device = os.fstat(self._descriptor).st_dev
            self._device = device if _is_known(device) else -1
        return self

    def __exit__(self, *failure: object) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def sync(self, paths: Sequence[str]) -> list[str]:
        """Make files and directories durable, and their names. May run in any thread.

        Args:
            paths: within the directory.

        Returns:
            Those that are not durable: they do not exist, or are on another file system. All of
            them if the system has no such call, or it failed.
        """
        descriptor = self._descriptor
        if descriptor < 0 or self._device < 0 or _syncfs is None:
            return list(paths)
        root, device = self._root, self._device
        left = [path for path in paths if _device_of(f"{root}/{path}") != device]
        # A file system that became read-only after a failure has nothing to sync, and says so.
        if _syncfs(descriptor) != 0 or _is_read_only(descriptor):
            return list(paths)
        return left


def _device_of(path: str) -> int:
    """Return the device of a file or directory; -1 if it cannot be reached."""
    try:
        return os.stat(path).st_dev  # noqa: PTH116 (of thousands: half the time)
    except OSError:
        return -1


def _is_read_only(descriptor: int) -> bool:
    return bool(os.fstatvfs(descriptor).f_flag & os.ST_RDONLY)


def _is_known(device: int) -> bool:
    """Return whether a device has a file system whose `syncfs` can be trusted."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = _MOUNTS.read_text(errors="replace").splitlines()
    except OSError:
        return False
    kinds: set[str] = set()
    for mount in mounts:
        head, _, tail = mount.partition(" - ")
        if head.split()[2:3] == [wanted]:
            kinds.update(tail.split()[:1])
    return bool(kinds) and kinds <= _KNOWN


def _find_syncfs() -> Callable[[int], int] | None:
    if sys.platform != "linux":
        return None
    release = os.uname().release.split(".")[:2]
    if not all(each.isdigit() for each in release) or (*map(int, release),) < _REPORTS_FAILURES:
        return None
    try:
        return ctypes.CDLL(None, use_errno=True).syncfs
    except (OSError, AttributeError):
        return None


_syncfs = _find_syncfs()
