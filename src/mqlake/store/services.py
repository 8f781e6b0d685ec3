"""The periodic work of a store: flush, checkpoint, persist, trim, deliver.

Upstream gives each of these a thread (`FlushRealTimeService`, `FlushConsumeQueueService`,
`CleanCommitLogService` …). Here each service says what is due, and the facade runs it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from mqlake.errors import SyncError
from mqlake.storage.clock import Clock

TICK = 0.001
"""Seconds after a put until it is dispatched, unless more puts bring that forward."""

LOADED_TICK = 0.004
"""The same for a store that was dispatched just before: a tick costs nearly the same for one
message and for a hundred.
"""

MANY_RECEIVED, RECEIVED_TICK = 64 << 10, 0.016
"""Bytes that a slave receives at once only if it lags, and seconds until they are dispatched: more
messages of each queue come together.
"""

LOOK_INTERVAL = 0.05
"""Seconds between checks for due services."""

FIRST_PAUSE, LONGEST_PAUSE = 1000, 30_000
"""Milliseconds after which a failed service is tried again: doubled each time, up to the
maximum.
"""

_MOST_DOUBLINGS = 8

_log = logging.getLogger(__name__)


class Job(Protocol):
    """Work that waits for the disk. The store continues meanwhile."""

    def run(self) -> None:
        """Wait for the disk, in any thread.

        Raises:
            DiskError: the disk failed.
        """
        ...

    def done(self) -> None:
        """Note in the store's thread that `run` succeeded."""
        ...


Started = Job | Iterator[None] | None
"""What a service begins with: a job for another thread, steps in the store's thread, or nothing."""


class Service:
    """One repeated task, and its failures.

    Args:
        interval: milliseconds from one start to the next, or a function that returns them if a
            setting may change them.
        start: called in the store's thread; returns a job that waits for the disk, None if there is
            nothing (more) to wait for, or an iterator over the steps of work for this thread.
        name: its name in log lines and counters.

    Attributes:
        failures: how often `start`, or the returned job, raised an error.
        failure: why it failed the last time; None if it did not.
    """

    def __init__(
        self,
        interval: int | Callable[[], int],
        start: Callable[[], Started],
        name: str = "",
    ) -> None:
        self._interval, self.start = interval, start
        self.name = name or start.__qualname__.partition(".")[0]
        self.failures = self._in_a_row = 0
        self.failure: str | None = None
        self.last = 0.0

    @property
    def interval(self) -> int:
        """Milliseconds from one start to the next."""
        return self._interval if isinstance(self._interval, int) else self._interval()

    def begin(self, now: float) -> None:
        """Note that it starts at a monotonic time (seconds)."""
        self.last = now

    def is_due(self, now: float) -> bool:
        """Return whether to start it at a monotonic time (seconds)."""
        return (now - self.last) * 1000 >= self.pause

    @property
    def pause(self) -> int:
        """Milliseconds until the next start: the interval, or more while it fails."""
        if not self._in_a_row:
            return self.interval
        doublings = min(self._in_a_row - 1, _MOST_DOUBLINGS)
        return max(self.interval, min(FIRST_PAUSE << doublings, LONGEST_PAUSE))

    def failed(self, error: Exception) -> None:
        """Count and log a failure; the next start is delayed, twice as long each time."""
        reason = f"{type(error).__name__}: {error}"
        # A lasting failure is one line each time: its traceback is logged once.
        trace = error if reason != self.failure else None
        self.failures += 1
        self._in_a_row += 1
        self.failure = reason
        _log.error(
            "service %s failed, and is tried again in %.1f s: %s",
            self.name,
            self.pause / 1000,
            reason,
            exc_info=trace,
        )

    def worked(self) -> None:
        """Note that it succeeded."""
        if self._in_a_row:
            _log.info("service %s works again, after %d failures", self.name, self._in_a_row)
            self._in_a_row, self.failure = 0, None


class ServiceJob:
    """A service's job: its errors are the service's failures, except a `SyncError`."""

    def __init__(self, service: Service, job: Job) -> None:
        self.service, self.job = service, job
        self._error: Exception | None = None

    def run(self) -> None:
        """Run the job, in any thread.

        Raises:
            SyncError: what was written may be lost, which is final.
        """
        try:
            self.job.run()
        except SyncError:
            raise
        except Exception as error:  # noqa: BLE001 (`done` counts and logs it)
            self._error = error

    def done(self) -> None:
        """Note the result of `run` in the store's thread.

        Raises:
            SyncError: as `run`.
        """
        error = self._error
        if error is None:
            try:
                self.job.done()
            except SyncError:
                raise
            except Exception as raised:  # noqa: BLE001 (counted and logged)
                error = raised
        if error is None:
            self.service.worked()
        else:
            self.service.failed(error)


class _FailedSync:
    """The job of a service that met a `SyncError` before it had a job: it raises that."""

    def __init__(self, error: SyncError) -> None:
        self._error = error

    def run(self) -> None:
        raise self._error

    def done(self) -> None:
        """Do nothing: it is never called."""


class _Pause:
    """A job that waits for nothing."""

    def run(self) -> None:
        """Do nothing."""

    def done(self) -> None:
        """Do nothing: the next call of `due` takes the next step."""


PAUSE: Job = _Pause()
"""What `Services.due` returns after a step of a service that has others to take: somebody else may
be served.
"""


class Services:
    """The services of one store, and which of them is due. For the store's thread.

    A service that fails is logged, counted, and tried again later; the others continue.
    """

    def __init__(self, clock: Clock, services: Sequence[Service] = ()) -> None:
        self._clock = clock
        self.begin(services)

    def begin(self, services: Sequence[Service]) -> None:
        """Start these services, and no others, at their intervals from now on."""
        self._services = services
        self._turn = 0
        self._steps: Iterator[None] | None = None
        now = self._clock.monotonic()
        for service in services:
            service.begin(now)

    def __iter__(self) -> Iterator[Service]:
        """Return the services, for those that report their state."""
        return iter(self._services)

    def due(self) -> Job | None:
        """Start what is due; return the first job that must wait for the disk, or `PAUSE`.

        It must be called again once that job is done, until it returns None. Until then no service
        is started twice, so that one that is always due does not block the others.
        """
        while self._turn < len(self._services):
            service = self._services[self._turn]
            job = self._start(service) if self._steps is None else self._next_step(service)
            if job is PAUSE:
                return job
            self._turn += 1
            if job is not None:
                return ServiceJob(service, job)
        self._turn = 0
        return None

    def _start(self, service: Service) -> Job | None:
        now = self._clock.monotonic()
        if not service.is_due(now):
            return None
        service.begin(now)
        try:
            job = service.start()
        except SyncError as error:
            return _FailedSync(error)
        except Exception as error:  # noqa: BLE001 (one service does not stop the others)
            service.failed(error)
            return None
        if isinstance(job, Iterator):
            self._steps = job
            return self._next_step(service)
        if job is None:
            service.worked()
        return job

    def _next_step(self, service: Service) -> Job | None:
        """Take a step of the service; return `PAUSE` if there may be another one."""
        assert self._steps is not None
        try:
            next(self._steps)
        except StopIteration:
            service.worked()
        except SyncError as error:
            self._steps = None
            return _FailedSync(error)
        except Exception as error:  # noqa: BLE001 (as in `_start`)
            service.failed(error)
        else:
            return PAUSE
        self._steps = None
        return None
