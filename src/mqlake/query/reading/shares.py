"""The number of shares into which a query is split."""

from __future__ import annotations

from mqlake.jobs.splits import sizes


def share_count(total: int, cores: int, least: int | None) -> int:
    """Return the number of shares for so many bytes: `least` if given, otherwise as for jobs."""
    return sizes.share_count(total, cores) if least is None else least
