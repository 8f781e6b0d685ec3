"""Maintenance of a table that another program changes at the same time."""

from __future__ import annotations

from mqlake.errors import JobError
from mqlake.query.reading.log import logger

_log = logger()


class CommitConflictError(JobError):
    """Another program committed at the same time, so nothing was committed."""


def tell_conflict(error: CommitConflictError) -> None:
    """Log that maintenance was left to the next time: the table is valid without it."""
    _log.warning("%s: files are merged or removed the next time", error)
