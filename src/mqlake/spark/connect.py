"""Tasks over Spark Connect, which has no RDDs: each task is a row of a DataFrame, in
`mapInArrow`.
"""

from __future__ import annotations

import importlib
import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from mqlake.errors import JobError
from mqlake.jobs.local import Progress
from mqlake.spark.failure import Attempt, failures
from mqlake.spark.pandas_warning import ignore_pandas_warning
from mqlake.spark.server_check import require_server
from mqlake.spark.shared_check import check_shared

if TYPE_CHECKING:
    from collections.abc import Generator

    from pyspark.sql import SparkSession

J = TypeVar("J")
R = TypeVar("R")

DEFAULT_PORT = 15002
RESULTS = "number long, result binary"

MANY_ROWS = 100_000
"""More than the cores of any cluster: a range of so many rows gets a partition for each core."""


class ConnectEngine:
    """Run tasks through a Spark Connect session (`mqlake.jobs.engine.Engine`).

    Jobs are sent pickled inside the function, and results are returned pickled in a column: an
    engine is as trustworthy as the server it talks to.
    """

    def __init__(self, spark: SparkSession, progress: Progress | None = None) -> None:
        # Connect's session has the methods of the classic session, with types of its own.
        self._spark: Any = spark
        self._progress = progress
        self._parallelism: int | None = None

    @property
    def parallelism(self) -> int:
        """The number of tasks that run at the same time: the partitions that Spark gives a range by
        default.
        """
        if self._parallelism is None:
            rows = self._spark.range(MANY_ROWS).selectExpr("spark_partition_id() AS number")
            with failures("find the number of cores"):
                self._parallelism = int(rows.distinct().count())
        return self._parallelism

    def run(self, task: Callable[[J], R], jobs: Sequence[J], title: str) -> list[R]:
        """Run `task` on each of `jobs`, one Spark task each, and return the results in their order.

        Raises the MqlakeError that a task raised, and JobError if anything else ends the job.
        """
        if not jobs:
            return []
        self._report(title, 0, len(jobs))
        rows = self._spark.range(0, len(jobs), 1, len(jobs))
        work = rows.mapInArrow(_pickled(Attempt(task), jobs), RESULTS)
        with failures(title), self._watched(title, len(jobs)), self._tagged(title):
            table: dict[str, list[Any]] = work.toArrow().to_pydict()
        self._report(title, len(jobs), len(jobs))
        pickled: dict[int, bytes] = dict(zip(table["number"], table["result"], strict=True))
        return [pickle.loads(pickled[number]) for number in range(len(jobs))]  # noqa: S301

    @contextmanager
    def _tagged(self, title: str) -> Generator[None]:
        """Name the work in Spark's UI; cancel it on the server if this program is interrupted."""
        tag = f"{title.replace(',', ' ')} (mqlake {uuid.uuid4().hex[:8]})"
        self._spark.addTag(tag)
        try:
            yield
        except KeyboardInterrupt:
            self._spark.interruptTag(tag)
            raise
        finally:
            self._spark.removeTag(tag)

    @contextmanager
    def _watched(self, title: str, total: int) -> Generator[None]:
        if self._progress is None:
            yield
            return

        def look(stages: Iterable[Any] | None, *_: object, **__: object) -> None:
            done = sum(stage.num_completed_tasks for stage in stages or ())
            self._report(title, min(done, total), total)

        self._spark.registerProgressHandler(look)
        try:
            yield
        finally:
            self._spark.removeProgressHandler(look)

    def _report(self, title: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(title, done, total)


class ConnectSession:
    """An own Spark Connect session on an existing server (`session.Session`)."""

    def __init__(self, url: str, progress: Progress | None, settings: dict[str, str]) -> None:
        require_server("Spark Connect server", url.partition("/;")[0].rstrip("/"), DEFAULT_PORT)
        with failures("connect to Spark"), ignore_pandas_warning():
            try:
                from pyspark.sql.connect.session import SparkSession as Remote
            except ImportError:
                raise JobError(
                    "Spark Connect needs more packages: pip install 'mqlake[connect]'"
                ) from None
            remote: Any = Remote.builder.remote(url).config(map=dict(settings)).create()
        self.spark: SparkSession = cast("SparkSession", remote)
        self.engine = ConnectEngine(self.spark, progress)

    def check_shared(self, directory: Path, *inputs: Path) -> None:
        """Raise JobError unless all executors see `directory` and `inputs`."""
        check_shared(self.engine, directory, *inputs)

    def close(self) -> None:
        """Close the session on the server, which continues to run."""
        self.spark.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


def _pickled(attempt: Attempt[J, R], jobs: Sequence[J]) -> Callable[[Iterator[Any]], Any]:
    """Return the function for `mapInArrow`: row number in; row number and pickled result out."""
    pickled = [pickle.dumps(job) for job in jobs]

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        arrow: Any = importlib.import_module("pyarrow")  # PySpark has no types here.
        for batch in batches:
            numbers: list[int] = batch.column(0).to_pylist()
            results = [pickle.dumps(attempt(pickle.loads(pickled[n]))) for n in numbers]  # noqa: S301
            columns = [arrow.array(numbers, arrow.int64()), arrow.array(results, arrow.binary())]
            yield arrow.record_batch(columns, names=["number", "result"])

    return run
