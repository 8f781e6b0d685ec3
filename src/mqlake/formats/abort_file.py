"""Read and write the abort file (docs/formats/abort_file.md).

A running broker keeps it in the store directory, and removes it when it stops cleanly.
"""

from __future__ import annotations

MAX_DIGITS = 19


def decode(data: bytes) -> int | None:
    """Return the process id that the file contains, or None if it has no valid one; never raises.

    RocketMQ 5 writes the id as decimal text; 4.9 leaves the file empty.
    """
    text = bytes(data[: MAX_DIGITS + 1]).strip()
    return int(text) if text.isdigit() and len(text) <= MAX_DIGITS else None


def encode(pid: int | None) -> bytes:
    """Return the file's content for a process id, or the empty content for None."""
    return b"" if pid is None else str(pid).encode()
