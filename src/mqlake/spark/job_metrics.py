"""What the batch jobs of a program do, as metrics: rebuild, verify, export, convert, archive, and
queries of any source.

    jobs = JobMetrics()
    with ClientMetrics(jobs).serve_in_thread(port=9100):
        with jobs.measured("verify") as done:
            done.report(verify(store, session.engine))
        with jobs.measured("daily report") as done:
            done.add(rows=frame.count())
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final

from mqlake.metrics.counts import Counts, Histograms, samples_of
from mqlake.metrics.metric import Sample, counter, gauge, histogram

_JOB = ("job",)
BOUNDS: Final = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0)
"""Seconds."""

ENDED = counter("mqlake_job_runs_total", "Runs that have ended, also by an error.", "", _JOB)
FAILURES = counter("mqlake_job_failures_total", "Runs that have ended by an error.", "", _JOB)
RUNNING = gauge("mqlake_job_running", "Runs that have not ended.", "", _JOB)
TIME = histogram("mqlake_job_time", "Duration of a run.", "seconds", _JOB)
ROWS = counter("mqlake_job_rows_total", "Messages or rows that were processed.", "", _JOB)
READ = counter("mqlake_job_read_total", "Bytes of the source that were read.", "bytes", _JOB)
WRITTEN = counter("mqlake_job_written_total", "Bytes that were written.", "bytes", _JOB)

_ROWS_OF: Final = ("records", "messages")
_READ_OF: Final = ("bytes_scanned", "bytes_read")
_WRITTEN_OF: Final = ("bytes_written", "bytes_copied")
"""Attributes of reports that are counted as rows, bytes read and bytes written."""


class JobMetrics:
    """The metrics of a program's batch jobs, for `mqlake.client.ClientMetrics`.

    Any thread may measure jobs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended, self._failures, self._running = Counts(), Counts(), Counts()
        self._rows, self._read, self._written = Counts(), Counts(), Counts()
        self._times = Histograms(BOUNDS)

    @contextmanager
    def measured(self, job: str) -> Generator[JobCounts]:
        """Count a run of a job, its duration, and whether an exception ends it.

        Args:
            job: the label `job`. Choose few names: each has samples of its own.

        Yields:
            What counts the rows and bytes of this run.
        """
        begin, label = time.perf_counter(), (job,)
        self._started(label)
        failures = 1
        try:
            yield JobCounts(self, job)
            failures = 0
        finally:
            with self._lock:
                self._running.add(label, -1)
                self._ended.add(label)
                self._failures.add(label, failures)
                self._times.add(label, time.perf_counter() - begin)

    def count(self, job: str, *, rows: int, read: int, written: int) -> None:
        """Count rows, bytes read and bytes written of a job."""
        with self._lock:
            self._rows.add((job,), rows)
            self._read.add((job,), read)
            self._written.add((job,), written)

    def samples(self) -> Sequence[Sample]:
        """Return all samples, for `mqlake.client.ClientMetrics`."""
        with self._lock:
            return samples_of(
                [
                    (ENDED, self._ended),
                    (FAILURES, self._failures),
                    (RUNNING, self._running),
                    (ROWS, self._rows),
                    (READ, self._read),
                    (WRITTEN, self._written),
                    (TIME, self._times),
                ],
            )

    def _started(self, label: tuple[str]) -> None:
        """Count a run that has begun; the totals of a new job begin with 0."""
        with self._lock:
            self._running.add(label)
            for totals in (self._ended, self._failures, self._rows, self._read, self._written):
                totals.add(label, 0)


class JobCounts:
    """Counts the rows and bytes of one run of a job (`JobMetrics.measured`)."""

    def __init__(self, metrics: JobMetrics, job: str) -> None:
        self._metrics, self._job = metrics, job

    def add(self, *, rows: int = 0, read: int = 0, written: int = 0) -> None:
        """Count rows, bytes read and bytes written."""
        self._metrics.count(self._job, rows=rows, read=read, written=written)

    def report(self, report: object) -> None:
        """Count what the report of a job of mqlake, such as a `VerifyReport`, contains."""
        self.add(
            rows=_first_of(report, _ROWS_OF),
            read=_first_of(report, _READ_OF),
            written=_first_of(report, _WRITTEN_OF),
        )


def _first_of(report: object, names: Sequence[str]) -> int:
    """Return the first of these attributes that a report has, otherwise 0."""
    return next((getattr(report, name) for name in names if hasattr(report, name)), 0)
