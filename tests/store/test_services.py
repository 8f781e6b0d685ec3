"""Services: one that fails is logged, counted and put off; the others go on."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from mqlake.errors import DiskError, FormatError, SyncError
from mqlake.store.services import FIRST_PAUSE, LONGEST_PAUSE, PAUSE, Job, Service, Services
from tests.crash.clock import ManualClock


class Counted:
    """A service's work: counted, and failing while `error` is set."""

    def __init__(self, job: Job | None = None) -> None:
        self.job, self.calls = job, 0
        self.error: Exception | None = None

    def __call__(self) -> Job | None:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return self.job


class Waiting:
    """A job that fails in `run`, in `done`, or not at all."""

    def __init__(self, run: Exception | None = None, done: Exception | None = None) -> None:
        self._run, self._done = run, done
        self.is_done = False

    def run(self) -> None:
        if self._run is not None:
            raise self._run

    def done(self) -> None:
        if self._done is not None:
            raise self._done
        self.is_done = True


def serve(services: Services) -> None:
    while (job := services.due()) is not None:
        job.run()
        job.done()


def test_a_service_that_fails_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock(0)
    first, second = Counted(), Counted()
    bad = Service(100, first.__call__, "bad")
    services = Services(clock, [bad, Service(100, second.__call__, "good")])
    first.error = FormatError("a damaged record")
    clock.forward(100)
    serve(services)
    assert (first.calls, second.calls) == (1, 1)
    assert (bad.failures, bad.failure) == (1, "FormatError: a damaged record")
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info
    assert "service bad failed" in record.message
    assert "a damaged record" in record.message


def test_a_service_that_fails_is_retried_later_each_time(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock(0)
    work = Counted()
    service = Service(10, work.__call__, "bad")
    services = Services(clock, [service])
    work.error = ValueError("odd")
    seconds = 600
    for _ in range(seconds * 100):
        clock.forward(10)
        serve(services)
    # 1, 2, 4, 8, 16, then every 30 seconds.
    assert work.calls == pytest.approx(seconds * 1000 / LONGEST_PAUSE, abs=5)
    assert sum(bool(record.exc_info) for record in caplog.records) == 1
    work.error = None
    clock.forward(LONGEST_PAUSE)
    serve(services)
    assert service.failure is None
    calls = work.calls
    clock.forward(20)
    serve(services)
    assert work.calls == calls + 1
    assert service.failures == calls - 1


@pytest.mark.parametrize("job", [Waiting(run=ValueError("x")), Waiting(done=ValueError("x"))])
def test_a_job_that_fails_is_its_services_failure(job: Waiting) -> None:
    clock = ManualClock(0)
    work, other = Counted(job), Counted()
    service = Service(10, work.__call__, "bad")
    services = Services(clock, [service, Service(10, other.__call__, "good")])
    clock.forward(10)
    serve(services)
    assert service.failures == 1
    assert not job.is_done
    assert other.calls == 1
    clock.forward(FIRST_PAUSE - 1)
    serve(services)
    assert work.calls == 1
    work.job = fine = Waiting()
    clock.forward(1)
    serve(services)
    assert fine.is_done
    assert service.failure is None


def test_a_sync_that_fails_is_not_the_services_affair() -> None:
    clock = ManualClock(0)
    service = Service(10, Counted(Waiting(run=SyncError("gone"))).__call__, "sync")
    services = Services(clock, [service])
    clock.forward(10)
    job = services.due()
    assert job is not None
    with pytest.raises(SyncError):
        job.run()


def test_a_sync_that_fails_where_a_service_starts_or_ends_is_final_too() -> None:
    clock = ManualClock(0)
    start, end = Counted(), Counted(Waiting(done=SyncError("end")))
    start.error = SyncError("start")
    services = Services(clock, [Service(10, start.__call__, "a"), Service(10, end.__call__, "b")])
    clock.forward(10)
    first, second = services.due(), services.due()
    assert first is not None
    with pytest.raises(SyncError, match="start"):
        first.run()
    assert second is not None
    second.run()
    with pytest.raises(SyncError, match="end"):
        second.done()
    assert not any(service.failures for service in services)


def test_a_disk_that_refuses_something_else_is_the_services_failure() -> None:
    clock = ManualClock(0)
    service = Service(10, Counted(Waiting(run=DiskError("full"))).__call__, "persist")
    services = Services(clock, [service])
    clock.forward(10)
    job = services.due()
    assert job is not None
    job.run()
    job.done()
    assert (service.failures, service.failure) == (1, "DiskError: full")


def test_a_service_that_is_always_due_leaves_the_others_their_turn() -> None:
    clock = ManualClock(0)
    greedy, other = Counted(Waiting()), Counted()
    services = Services(clock, [Service(0, greedy.__call__, "a"), Service(0, other.__call__, "b")])
    for _ in range(3):
        serve(services)
    assert (greedy.calls, other.calls) == (3, 3)


def test_others_are_served_between_the_steps_of_a_service() -> None:
    clock, taken = ManualClock(0), list[int]()

    def steps() -> Iterator[None]:
        for number in range(3):
            taken.append(number)
            yield

    other = Counted()
    stepping = Service(10, steps, "a")
    services = Services(clock, [stepping, Service(10, other.__call__, "b")])
    clock.forward(10)
    for number in range(3):
        assert services.due() is PAUSE
        assert (taken, other.calls) == ([*range(number + 1)], 0)
    assert services.due() is None
    assert other.calls == 1
    clock.forward(10)
    assert services.due() is PAUSE
    assert len(taken) == 4


def test_a_step_that_fails_ends_the_turn_of_its_service() -> None:
    clock, other = ManualClock(0), Counted()

    def steps() -> Iterator[None]:
        yield
        raise DiskError("full")

    stepping = Service(10, steps, "a")
    services = Services(clock, [stepping, Service(10, other.__call__, "b")])
    clock.forward(10)
    assert services.due() is PAUSE
    assert services.due() is None
    assert (stepping.failure, other.calls) == ("DiskError: full", 1)


def test_a_sync_that_fails_in_a_step_is_final() -> None:
    clock = ManualClock(0)

    def steps() -> Iterator[None]:
        yield
        raise SyncError("step")

    services = Services(clock, [Service(10, steps, "a")])
    clock.forward(10)
    assert services.due() is PAUSE
    job = services.due()
    assert job is not None
    with pytest.raises(SyncError, match="step"):
        job.run()
