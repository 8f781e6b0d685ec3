"""Where tests write: in memory, if there is enough of it, because they sync many small files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

VARIABLE = "PYTEST_DEBUG_TEMPROOT"
"""In which pytest looks for the directory of all directories of tests."""

MEMORY = Path("/dev/shm")
NEEDED = 8 << 30
"""Bytes that must be free: tests that run at the same time keep so much of them in use, at most."""


def write_to_memory() -> None:
    """Let the tests of this process, and of those that it starts, write to memory, unless somebody
    has chosen a directory, or there is too little of it.
    """
    if VARIABLE not in os.environ and has_room(MEMORY):
        os.environ[VARIABLE] = str(MEMORY)


def has_room(directory: Path) -> bool:
    """Return whether a file system in memory has room for tests, and the machine has twice as much
    memory to spare.
    """
    if not os.access(directory, os.W_OK) or shutil.disk_usage(directory).free < NEEDED:
        return False
    return available_memory() >= 2 * NEEDED


def available_memory(information: Path = Path("/proc/meminfo")) -> int:
    """Return how many bytes of memory programs can get; 0 if the system does not say."""
    try:
        lines = information.read_text().splitlines()
    except OSError:
        return 0
    found = (line.split() for line in lines if line.startswith("MemAvailable:"))
    return next((int(kilobytes) << 10 for _, kilobytes, *_ in found), 0)
