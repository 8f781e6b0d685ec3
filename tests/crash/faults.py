"""Workloads on a disk that refuses: what must hold whatever it refuses, and whenever.

A put that fails is not acknowledged; nothing acknowledged is lost; what was served can still be
read; a sync that failed ends all puts; opened again on a disk that is well, the store has
everything that it acknowledged.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from mqlake.errors import DiskError, StoreError
from mqlake.store.append.put_result import PutResult
from mqlake.store.snapshot import ABORT_NAME
from tests.crash.clock import ManualClock
from tests.crash.disk import RecordedDisk
from tests.crash.expectation import Crash, Expectation, require
from tests.crash.faulty import Fault, FaultyDisk
from tests.crash.images import Limits, PowerCuts
from tests.crash.log_walk import queue_entries
from tests.crash.pending import PendingDisk
from tests.crash.session import Session
from tests.crash.simulator import DEAD_FOR, EMPTY, START, moments
from tests.crash.snapshot import Snapshot
from tests.crash.store_workload import StoreWorkload
from tests.crash.trace import Sync, SyncNames

CUTS = Limits(exhaustive=4, single=1, samples=1)


class FaultySession(Session):
    """A session whose user takes a failure for what it is, and goes on."""

    def send(self, act: Callable[[], Sequence[PutResult]]) -> Sequence[PutResult]:
        had_failed, start = self.store.failure is not None, len(self.disk.trace)
        results = act()
        fresh = {found.record.physical_offset: found for found in self._note_sent(start)}
        taken = {at for result in results for at in _offsets(result)}
        require(not (had_failed and taken), "a put was taken after a sync had failed")
        require(taken <= {*fresh}, f"acknowledged, but not in the log: {taken - {*fresh}}")
        require({*fresh} <= taken, f"refused, but in the log: {fresh.keys() - taken}")
        self._acknowledge(fresh.values())
        if self.store.waits_for_disk and taken:
            self.flush()
        return results

    def flush(self) -> None:
        with self._bearing():
            super().flush()

    def flush_around(self, act: Callable[[], object]) -> None:
        if self.store.failure is not None:
            return  # as the facades: after a failed sync there is none that could be believed
        try:
            super().flush_around(act)
        except DiskError as error:
            self.store.fail(error)

    def pass_time(self, milliseconds: int) -> None:
        try:
            super().pass_time(milliseconds)
        except DiskError as error:
            self.store.fail(error)

    def remove_next(self) -> None:
        try:
            super().remove_next()
        except DiskError as error:
            self.store.fail(error)

    def checkpoint(self) -> None:
        with self._bearing():
            super().checkpoint()

    def stop(self) -> None:
        with self._bearing():
            super().stop()

    def persist(self) -> None:
        with self._bearing():
            super().persist()

    def start(self) -> None:
        # The system takes for written what it failed to write: nobody can go on from there, on
        # this machine, without losing it at the next power cut.
        if any(isinstance(step, Sync | SyncNames) and step.failed for step in self.disk.trace):
            raise DiskError("a sync has failed")
        self.disk.abandon()
        super().start()

    def hand_over(self) -> None:
        # RocketMQ leaves such a checkpoint where it has stopped as it should.
        if self.disk.exists(ABORT_NAME):
            raise DiskError("the store has not stopped")
        super().hand_over()

    @contextmanager
    def _bearing(self) -> Generator[None]:
        """Bear that the disk fails; after a sync did, the store must know."""
        start = len(self.disk.trace)
        try:
            yield
        except DiskError:
            pass
        else:
            lost = [step for step in self.disk.trace[start:] if isinstance(step, Sync | SyncNames)]
            require(not any(step.failed for step in lost), "a failed sync was not told of")


def _offsets(result: PutResult) -> Sequence[int]:
    return (result.offsets or (result.physical_offset,)) if result.is_ok else ()


def run(workload: StoreWorkload, fault: Fault, at: int) -> FaultyDisk:
    """Run a workload with one fault at its `at`-th operation; check everything.

    Raises:
        Exception: a violation.
    """
    clock = ManualClock(START)
    disk = FaultyDisk(fault, at, clock)
    session: FaultySession | None = None
    try:
        session = FaultySession(disk, clock, workload.settings)
        workload.script(session)
    except StoreError:  # the user has given up
        require(disk.has_failed, "the store failed, the disk had not")
    disk.mend()
    history = session.history if session else {}
    if session is not None and not session.has_lost_files:
        check_reads(session)
    twin = StoreWorkload(workload.name, workload.script, workload.settings, history)
    expectation, pending = Expectation(), PendingDisk(EMPTY)
    for step, notes in moments(disk.trace):
        pending.apply(step)
        for note in notes:
            expectation.note(note)
    _reopen(twin, expectation, disk.snapshot(), Crash.KILL)
    for content in PowerCuts(pending).images(random.Random(at), CUTS):
        _reopen(twin, expectation, content, Crash.POWER_CUT)
    return disk


def _reopen(
    workload: StoreWorkload, expectation: Expectation, content: Snapshot, crash: Crash
) -> None:
    disk = RecordedDisk(content, ManualClock(START + DEAD_FOR))
    expectation.check(workload.examine(disk), crash)


def check_reads(session: FaultySession) -> None:
    """What was dispatched can still be read, whatever has failed."""
    store = session.store
    for queue in store.queues.queues():
        least, most = store.queues.min_offset(*queue), store.queues.max_offset(*queue)
        entries = queue_entries(session.disk.bystander(), queue)
        for offset in range(least, most):
            at, size, _ = entries[offset]
            if at < store.log.min_offset:
                continue
            require(bytes(store.log.read(at, size)) in session.history[at], f"{queue} {offset}")
