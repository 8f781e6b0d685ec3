"""Stores on a disk, for what works on directories."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.hostile.stores import Files

_MEMORY = "/dev/shm"


@contextmanager
def sandbox() -> Iterator[Path]:
    """Give an empty directory, in memory where there is such a place."""
    place = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="hostile-", dir=place) as path:
        yield Path(path)


def write(files: Files, root: Path) -> None:
    """Write a store; what no file system can hold is left out."""
    for name, data in files.items():
        parts = name.split("/")
        if {"", ".", ".."} & {*parts} or "\0" in name:
            continue
        path = root.joinpath(*parts)
        with suppress(OSError):  # a longer name than there can be, a file where a directory is
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def tree(root: Path) -> Files:
    """Return all files below a directory."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
