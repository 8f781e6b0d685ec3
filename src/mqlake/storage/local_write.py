"""Write files of this machine so that they survive a power loss."""

from __future__ import annotations

import os
from pathlib import Path


def fsync_file(path: Path) -> None:
    """Return once the file's bytes are on the disk."""
    _fsync(path, os.O_RDONLY)


def fsync_directory(path: Path) -> None:
    """Return once the directory's names are on the disk."""
    _fsync(path, os.O_RDONLY | os.O_DIRECTORY)


def rename_durably(source: Path, target: Path) -> None:
    """Rename a file or directory in one step; return once the new name is on the disk.

    A file of the target's name is replaced. The content must have been synced before.
    """
    source.replace(target)
    fsync_directory(target.parent)
    if source.parent != target.parent:
        fsync_directory(source.parent)


def _fsync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
