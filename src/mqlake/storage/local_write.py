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


def _fsync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
