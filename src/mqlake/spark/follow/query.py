"""The streaming query of `follow`: started, watched, and stopped between two micro-batches."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqlake.errors import JobError
from mqlake.jobs.local import Progress
from mqlake.spark.failure import failures
from mqlake.spark.pandas_warning import ignore_pandas_warning

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mqlake.spark.follow.options import StoreQuery

TITLE = "follow"

Take = Callable[["DataFrame", int], None]

_LOOK = 0.3
"""Seconds between two looks at how the query is."""

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
}


class _StoppedError(Exception):
    """Nothing more is wanted; the batch is left to the next start."""


class Query:
    """Run `take` on each micro-batch of a store's messages, in order, until it is told to stop.

    Args:
        stop: set by somebody else, from any thread or a signal's handler.
        idle: called now and then while no batch is being taken.
        prepare: makes of the source's rows those that `take` gets.
    """

    def __init__(
        self,
        spark: SparkSession,
        query: StoreQuery,
        take: Take,
        stop: threading.Event,
        progress: Progress | None,
        idle: Callable[[], None] | None = None,
        prepare: Callable[[DataFrame], DataFrame] | None = None,
    ) -> None:
        self._spark, self._query, self._take = spark, query, take
        self._prepare = prepare
        self._stop, self._progress, self._idle = stop, progress, idle
        self._working = threading.Lock()
        self._failure: Exception | None = None

    def run(self) -> None:
        """Return when all is taken (`once`), or once the batch is done in which `stop` was set.

        Raises:
            MqlakeError: the source, a task or `take` failed.
        """
        from mqlake.spark.data_source import RocketMQDataSource

        for name, value in _SETTINGS.items():
            self._spark.conf.set(name, value)
        # By name it would be found, too, unless another package with a source is broken.
        self._spark.dataSource.register(RocketMQDataSource)
        with failures(TITLE), ignore_pandas_warning():
            query = self._start()
            try:
                self._watch(query)
            finally:
                if query.isActive:
                    query.stop()

    def _start(self) -> Any:
        query = self._query
        rows = (
            self._spark.readStream.format("rocketmq")
            .options(**{"startingOffsets": "earliest", **query.source})
            .option("columns", ",".join(query.columns))
            .load(str(query.store))
        )
        if self._prepare is not None:
            rows = self._prepare(rows)
        writer = rows.writeStream.option("checkpointLocation", str(query.checkpoint))
        writer = writer.foreachBatch(self._take_one)
        if query.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=query.processing_time).start()

    def _take_one(self, rows: DataFrame, number: int) -> None:
        with self._working:
            if self._stop.is_set():
                raise _StoppedError
            try:
                self._take(rows, number)
            except Exception as error:
                self._failure = error
                raise

    def _watch(self, query: Any) -> None:
        while query.isActive and not self._stop.is_set():
            self._stop.wait(_LOOK)
            self._report(query)
            if self._idle is not None and self._working.acquire(blocking=False):
                try:
                    self._idle()
                finally:
                    self._working.release()
        if self._stop.is_set():
            with self._working:
                pass  # what has been begun is finished
            return
        self._report(query)
        if self._failure is not None:
            with failures(TITLE):
                raise self._failure
        if query.exception() is not None:
            raise query.exception()

    def _report(self, query: Any) -> None:
        if self._progress is None or query.lastProgress is None:
            return
        for source in query.lastProgress["sources"]:
            done, total = _offset(source["endOffset"]), _offset(source["latestOffset"])
            if done is not None:
                self._progress(TITLE, done, max(done, total or 0))


def _offset(written: Any) -> int | None:
    """Return the physical offset of a position of the source, as Spark's progress tells it."""
    try:
        found = json.loads(written) if isinstance(written, str) else written
        return int(found["physicalOffset"])
    except (TypeError, ValueError, KeyError):
        return None


def require_classic(spark: Any) -> None:
    """Raise JobError for Spark Connect, where batches are not taken in this process."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise JobError("mqlake follow needs a Spark of its own or a cluster, not Spark Connect")
