"""Merge small files and expire old versions of a table, between two micro-batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlake.lake.options import FollowOptions, Format
from mqlake.spark.follow.micro_batch import MicroBatches
from mqlake.storage.clock import SystemClock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EVERY = 3600.0
"""Seconds between two checks for old versions."""


class Maintenance:
    """Processes micro-batches, and maintains the table in between.

    All of it runs in the thread that processes a batch, or while no batch is processed.
    """

    def __init__(self, batches: MicroBatches, options: FollowOptions) -> None:
        self._batches, self._keep = batches, options.keep_versions
        self._waits = options.format is Format.PARQUET
        self._clock = SystemClock()
        self._next = self._clock.monotonic() + EVERY

    def take(self, rows: DataFrame, number: int) -> None:
        """Write and commit a batch; then expire old versions if it is time."""
        self._batches.take(rows, number)
        self._expire_if_due()

    def while_idle(self) -> None:
        """Merge small files and expire old versions if it is time; publish files that waited."""
        if self._waits or self._batches.is_merge_due:
            self._batches.compact()
        self._expire_if_due()

    def _expire_if_due(self) -> None:
        if self._clock.monotonic() >= self._next:
            self.expire()

    def expire(self) -> None:
        """Expire versions that are older than their retention, and remove their files."""
        self._next = self._clock.monotonic() + EVERY
        if self._keep is not None:
            self._batches.expire(self._keep)
