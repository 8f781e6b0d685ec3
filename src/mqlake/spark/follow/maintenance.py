"""Forget old versions of a table on a schedule, between two micro-batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlake.spark.follow.micro_batch import MicroBatches
from mqlake.spark.follow.options import FollowOptions, Format
from mqlake.storage.clock import SystemClock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EVERY = 3600.0
"""Seconds between two looks for old versions."""


class Maintenance:
    """Take micro-batches, and look after the table in between.

    All of it happens in the thread that takes a batch, or while none is taken.
    """

    def __init__(self, batches: MicroBatches, options: FollowOptions) -> None:
        self._batches, self._keep = batches, options.keep_versions
        self._waits = options.format is Format.PARQUET
        self._clock = SystemClock()
        self._next = self._clock.monotonic() + EVERY

    def take(self, rows: DataFrame, number: int) -> None:
        """Write and commit a batch; then forget old versions if it is time."""
        self._batches.take(rows, number)
        self._expire_if_due()

    def while_idle(self) -> None:
        """Publish what has waited long enough; forget old versions if it is time."""
        if self._waits:
            self._batches.compact()
        self._expire_if_due()

    def _expire_if_due(self) -> None:
        if self._clock.monotonic() >= self._next:
            self.expire()

    def expire(self) -> None:
        """Forget versions that are older than they are kept, and remove their files."""
        self._next = self._clock.monotonic() + EVERY
        if self._keep is not None:
            self._batches.expire(self._keep)
