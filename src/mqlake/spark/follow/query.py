"""The streaming query of `follow`: start it, watch it, and stop it between two micro-batches."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlake.errors import JobError
from mqlake.jobs.local import Progress
from mqlake.query.reading.log import logger
from mqlake.spark.failure import failures, is_lost_worker, reason
from mqlake.spark.pandas_warning import ignore_pandas_warning

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mqlake.lake.options import StoreQuery

log = logger()

TITLE, FIRST_BATCH = "follow", "first batch"
"""Titles of progress."""

_MOST_RESTARTS = 5
"""How often the query is started again if workers are lost before a batch is finished."""

_PAUSE = 1.0
"""Seconds before the query is started again."""

Take = Callable[["DataFrame", int], None]

_LOOK = 0.3
"""Seconds between two checks of the query's state."""

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
}


class _StoppedError(Exception):
    """The query was stopped; the batch is left to the next start."""


class MicroBatchQuery:
    """Runs `take` on each micro-batch of a store's messages, in order, until it is stopped.

    Args:
        stop: set by the caller, from any thread or a signal handler.
        idle: called now and then while no batch is processed.
        prepare: converts the source's rows to those that `take` gets.
    """

    def __init__(
        self,
        *,
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
        self._finished = self._restarts = 0

    def run(self) -> None:
        """Return when all is processed (`once`), or after the batch during which `stop` was set.

        Raises:
            MqlakeError: the source, a task or `take` failed.
        """
        from mqlake.spark.data_source import RocketMQDataSource

        for name, value in _SETTINGS.items():
            self._spark.conf.set(name, value)
        # Spark also finds the source by its name, unless another package with a source is broken.
        self._spark.dataSource.register(RocketMQDataSource)
        with failures(TITLE), ignore_pandas_warning():
            while not self._run_once():
                pass

    def _run_once(self) -> bool:
        """Run the query; return whether it has ended, or False to start it again.

        A lost worker of Python ends Spark's query. The next one continues at the checkpoint.
        """
        done = self._finished
        try:
            query = self._start()
            try:
                self._watch(query)
            finally:
                if query.isActive:
                    query.stop()
        except Exception as error:
            self._restarts = 1 if self._finished > done else self._restarts + 1
            if not is_lost_worker(error) or self._restarts > _MOST_RESTARTS:
                raise
            self._failure = None
            log.warning(
                "%s: a Python worker of Spark was lost (%s); the query starts again",
                self._query.store,
                reason(str(error)),
            )
            return self._stop.wait(_PAUSE)
        return True

    def _start(self) -> Any:
        query = self._query
        _remove_unfinished(query.checkpoint)
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
                self._begin_batch()
                self._take(rows, number)
            except Exception as error:
                self._failure = error
                raise
            self._finished += 1
            self._end_batch()

    def _begin_batch(self) -> None:
        """Show that the first batch has begun: Spark reports progress only after it."""
        if self._progress is not None and not self._finished:
            self._progress(FIRST_BATCH, 0, 1)

    def _end_batch(self) -> None:
        if self._progress is not None and self._finished == 1:
            self._progress(FIRST_BATCH, 1, 1)

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
                pass  # A batch that has begun is finished.
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


def _remove_unfinished(checkpoint: Path) -> None:
    """Remove the files that a killed driver was writing: Spark does not start beside those of the
    first batch. The caller holds the checkpoint, so no driver is writing them now.
    """
    for directory in ("offsets", "commits"):
        for pattern in (".*.tmp", ".*.tmp.crc"):
            for path in (checkpoint / directory).glob(pattern):
                path.unlink()


def _offset(written: Any) -> int | None:
    """Return the physical offset in a position of the source, as in Spark's progress."""
    try:
        found = json.loads(written) if isinstance(written, str) else written
        return int(found["physicalOffset"])
    except (TypeError, ValueError, KeyError):
        return None


def require_classic(spark: Any) -> None:
    """Raise JobError for Spark Connect, where batches are not processed in this process."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise JobError("mqlake follow needs a Spark of its own or a cluster, not Spark Connect")
