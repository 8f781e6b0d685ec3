"""Report what the disk refuses to a job as a `DiskError` that names the file."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from mqlake.storage.local_owned import disk_error

P = ParamSpec("P")
R = TypeVar("R")

_PLACES = ("output", "directory", "target", "out", "store")
"""The fields of a task's input that name its directory."""


def reports_disk_faults(run: Callable[P, R]) -> Callable[P, R]:
    """Return a job or a task that raises a `DiskError` instead of the system's `OSError`.

    The error names the file, otherwise the directory in which the job or the task works.
    """

    @wraps(run)
    def reporting(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return run(*args, **kwargs)
        except OSError as error:
            place = error.filename or _place([*args, *kwargs.values()])
            raise disk_error(place, error) from error

    return reporting


def _place(values: list[object]) -> object:
    """Return the first directory that arguments name."""
    first = values[0]
    return next((found for name in _PLACES if (found := getattr(first, name, None))), first)
