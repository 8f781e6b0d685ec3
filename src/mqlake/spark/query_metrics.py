"""What the streaming queries of a Spark session do, as metrics.

    with QueryMetrics(spark) as queries, ClientMetrics(queries).serve_in_thread(port=9100):
        query.awaitTermination()

It counts all sources and sinks of the session, mqlake's and others.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any, Final, Self, cast

from mqlake.metrics.counts import Counts, Histograms, samples_of
from mqlake.metrics.metric import Sample, counter, gauge, histogram

_QUERY = ("query",)
_PHYSICAL: Final = "physicalOffset"
BOUNDS: Final = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""Seconds."""

BATCHES = counter("mqlake_spark_batches_total", "Micro-batches that were finished.", "", _QUERY)
READ = counter(
    "mqlake_spark_read_rows_total",
    "Rows that a source has returned, by the number of the source in its query.",
    "",
    ("query", "source"),
)
WRITTEN = counter(
    "mqlake_spark_written_rows_total",
    "Rows that were written, if the sink counts them.",
    "",
    _QUERY,
)
LAG = gauge(
    "mqlake_spark_lag",
    "What a source has and the query has not read: messages of a running cluster or of Kafka's"
    " files, bytes of a store's log.",
    "",
    ("query", "source"),
)
TIME = histogram("mqlake_spark_batch_time", "Duration of a micro-batch.", "seconds", _QUERY)
RUNS = gauge("mqlake_spark_query_runs", "1 while the query runs, 0 once it has ended.", "", _QUERY)
FAILURES = counter("mqlake_spark_query_failures_total", "Ends of a query by an error.", "", _QUERY)


class QueryMetrics:
    """The metrics of a session's streaming queries, counted from entering to leaving.

    The label `query` is the query's name, or its id without a name.

    Args:
        spark: a session of Spark, also one over Spark Connect.
    """

    def __init__(self, spark: Any) -> None:
        self._spark, self._listener = spark, None
        # Spark calls its listeners in a thread of its own.
        self._lock = threading.Lock()
        self._batches, self._read, self._written = Counts(), Counts(), Counts()
        self._failures, self._times = Counts(), Histograms(BOUNDS)
        self._runs: dict[str, bool] = {}
        self._lags: dict[tuple[str, str], int] = {}
        self._names: dict[str, str] = {}

    def __enter__(self) -> Self:
        """Listen to the session's queries."""
        self._listener = _listener(self)
        self._spark.streams.addListener(self._listener)
        return self

    def __exit__(self, *failure: object) -> None:
        self._spark.streams.removeListener(self._listener)

    def started(self, event: Any) -> None:
        """Note that a query has started (`QueryStartedEvent`)."""
        with self._lock:
            name = self._names[str(event.id)] = str(event.name or event.id)
            self._runs[name] = True
            self._batches.add((name,), 0)

    def progressed(self, progress: Any) -> None:
        """Count a micro-batch (`StreamingQueryProgress`), if there was one, and note the lag."""
        durations: dict[str, int] = dict(progress.durationMs)
        name = str(progress.name or progress.id)
        with self._lock:
            for number, source in enumerate(progress.sources):
                if (lag := _lag(source.latestOffset, source.endOffset)) is not None:
                    self._lags[name, str(number)] = lag
            if "addBatch" not in durations:
                return
            self._batches.add((name,))
            self._times.add((name,), durations.get("triggerExecution", 0) / 1000)
            for number, source in enumerate(progress.sources):
                self._read.add((name, str(number)), max(0, source.numInputRows))
            if progress.sink.numOutputRows >= 0:
                self._written.add((name,), progress.sink.numOutputRows)

    def terminated(self, event: Any) -> None:
        """Note that a query has ended (`QueryTerminatedEvent`)."""
        with self._lock:
            name = self._names.get(str(event.id), str(event.id))
            self._runs[name] = False
            self._failures.add((name,), int(event.exception is not None))

    def samples(self) -> Sequence[Sample]:
        """Return all samples, for `mqlake.client.metrics.ClientMetrics`."""
        with self._lock:
            found = samples_of(
                [
                    (BATCHES, self._batches),
                    (READ, self._read),
                    (WRITTEN, self._written),
                    (FAILURES, self._failures),
                    (TIME, self._times),
                ],
            )
            found += [Sample(LAG, lag, labels) for labels, lag in self._lags.items()]
            return found + [Sample(RUNS, int(runs), (name,)) for name, runs in self._runs.items()]


def _lag(latest: str | None, done: str | None) -> int | None:
    """Return the difference of two positions of a source; None if it has no such positions."""
    try:
        return _difference(json.loads(latest or ""), json.loads(done or ""))
    except ValueError:
        return None


def _difference(latest: Any, done: Any) -> int:
    if isinstance(latest, dict):
        of_latest = cast("dict[str, Any]", latest)
        of_done = cast("dict[str, Any]", done) if isinstance(done, dict) else {}
        # The position in a store has one offset, beside what identifies the log.
        names = [_PHYSICAL] if _PHYSICAL in of_latest else [n for n in of_latest if n[:1] != "#"]
        return sum(_difference(of_latest[name], of_done.get(name, 0)) for name in names)
    if isinstance(latest, int) and isinstance(done, int):
        return max(0, latest - done)
    return 0


def _listener(metrics: QueryMetrics) -> Any:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class QueryListener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:  # noqa: N802 (Spark's names)
            metrics.started(event)

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            metrics.progressed(event.progress)

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            metrics.terminated(event)

    return QueryListener()
