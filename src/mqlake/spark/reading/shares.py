"""Into how many shares a query is cut."""

from __future__ import annotations

from mqlake.jobs.splits.splits import LARGEST, SMALLEST


def share_count(total: int, cores: int, least: int | None) -> int:
    """Return into how many shares so many bytes are cut: `least` if given.

    Else one a core, more where they would be larger than 1 GiB, fewer where smaller than 4 MiB.
    """
    if least is not None:
        return least
    rounds = -(-total // (cores * LARGEST)) or 1
    return max(1, min(rounds * cores, total // SMALLEST))
