"""The number of shares into which a query is split."""

from __future__ import annotations

from mqlake.jobs.splits.splits import LARGEST, SMALLEST


def share_count(total: int, cores: int, least: int | None) -> int:
    """Return the number of shares for so many bytes: `least` if given.

    Otherwise one for each core; more if they would exceed 1 GiB, fewer if they would be below 4
    MiB.
    """
    if least is not None:
        return least
    rounds = -(-total // (cores * LARGEST)) or 1
    return max(1, min(rounds * cores, total // SMALLEST))
