"""Jobs that are done to their end at once."""

from __future__ import annotations

from typing import TypeVar

from mqlake.remoting.slices import Job

T = TypeVar("T")


def finish(job: Job[T]) -> T:
    """Return what a job returns."""
    while True:
        try:
            next(job)
        except StopIteration as stop:
            return stop.value
