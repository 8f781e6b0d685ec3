"""How many shares a log is divided into."""

from __future__ import annotations

SMALLEST = 4 << 20
"""Bytes below which a task costs more than it saves."""
LARGEST = 1 << 30
"""Bytes after which a task reports: progress shows, and a retry repeats no more than that."""


def share_count(total: int, cores: int) -> int:
    """Return the number of shares for so many bytes.

    One for each core; more if they would exceed 1 GiB, fewer if they would be below 4 MiB.
    """
    rounds = -(-total // (cores * LARGEST)) or 1
    return max(1, min(rounds * cores, total // SMALLEST))
