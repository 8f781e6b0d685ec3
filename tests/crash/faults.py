"""Workloads on a disk that refuses: what must hold whatever it refuses, and whenever.

A put that fails is not acknowledged; nothing acknowledged is lost; what was served can still be
read; a sync that failed ends all puts; opened again on a disk that is well, the store has
everything that it acknowledged. And without being opened again: once the disk is well, the same
store takes messages, dispatches and serves them, does all that falls due, and stops cleanly.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from mqlake.errors import DiskError, StoreError, SyncError
from mqlake.store.append.put_result import PutResult
from mqlake.store.owned_store import OwnedStore
from mqlake.store.snapshot import ABORT_NAME
from tests.crash.clock import ManualClock
from tests.crash.disk import RecordedDisk
from tests.crash.expectation import Crash, Expectation, Found, ViolationError, require
from tests.crash.faulty import Fault, FaultyDisk
from tests.crash.images import Limits, PowerCuts
from tests.crash.log_walk import queue_entries
from tests.crash.pending import PendingDisk
from tests.crash.session import TOPIC, Session
from tests.crash.simulator import DEAD_FOR, EMPTY, START, moments
from tests.crash.snapshot import Snapshot
from tests.crash.store_workload import StoreWorkload
from tests.crash.trace import Step, Sync, SyncNames

CUTS = Limits(exhaustive=4, single=1, samples=1)


class Ending(Enum):
    """What became of the store once the disk was well again."""

    CONTINUED = "continued"
    FINAL = "stayed stopped after a failed sync"
    STARTED = "was not open, and was started"


@dataclass
class FaultRun:
    """What came of one fault: whether it came at all, and how it ended; None if not looked at."""

    has_failed: bool
    ending: Ending | None = None


class FaultySession(Session):
    """A session whose user takes a failure for what it is, and goes on.

    Attributes:
        is_open: whether the store is open.
        opened_at: the step of the trace at which it was opened.
        bears: whether the user bears failures; not once the disk is well again.
    """

    is_open, opened_at, bears = False, 0, True

    def _open(self) -> OwnedStore:
        self.is_open, self.opened_at = False, len(self.disk.trace)
        store = super()._open()
        self.is_open = True
        return store

    def send(self, act: Callable[[], Sequence[PutResult]]) -> Sequence[PutResult]:
        had_failed, start = self.store.health.failure is not None, len(self.disk.trace)
        results = act()
        fresh = {found.record.physical_offset: found for found in self._note_sent(start)}
        taken = {at for result in results for at in _offsets(result)}
        require(not (had_failed and taken), "a put was taken after a sync had failed")
        require(taken <= {*fresh}, f"acknowledged, but not in the log: {taken - {*fresh}}")
        require({*fresh} <= taken, f"refused, but in the log: {fresh.keys() - taken}")
        self._acknowledge(fresh.values())
        if not self.store.watermarks.confirms_at_append and taken:
            self.flush()
        return results

    def flush(self) -> None:
        with self._bearing():
            super().flush()

    def flush_around(self, act: Callable[[], object]) -> None:
        if self.store.health.failure is not None:
            return  # as the facades: after a failed sync there is none that could be believed
        with self._failing():
            super().flush_around(act)

    def start_due(self) -> bool:
        with self._failing():
            return super().start_due()
        return True

    def remove_next(self) -> None:
        with self._failing():
            super().remove_next()

    def checkpoint(self) -> None:
        with self._bearing():
            super().checkpoint()

    def stop(self) -> None:
        self.is_open = False
        with self._bearing():
            super().stop()

    def kill(self) -> None:
        self.is_open = False
        super().kill()

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
            if not self.bears:
                raise
        else:
            lost = [step for step in self.disk.trace[start:] if isinstance(step, Sync | SyncNames)]
            require(not any(step.failed for step in lost), "a failed sync was not told of")

    @contextmanager
    def _failing(self) -> Generator[None]:
        """Tell the store of a failed sync, as its facades do, and bear any other failure."""
        try:
            yield
        except DiskError as error:
            if not self.bears:
                raise
            if isinstance(error, SyncError):
                self.store.health.fail(error)


def _offsets(result: PutResult) -> Sequence[int]:
    return (result.offsets or (result.physical_offset,)) if result.is_ok else ()


def run(workload: StoreWorkload, fault: Fault, at: int) -> FaultRun:
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
    _note(disk.trace, expectation, pending)
    found: dict[bytes, Found] = {}
    _reopen(twin, expectation, disk.snapshot(), Crash.KILL, found)
    for content in PowerCuts(pending).images(random.Random(at), CUTS):
        _reopen(twin, expectation, content, Crash.POWER_CUT, found)
    if not disk.has_failed:
        return FaultRun(has_failed=False)
    done = len(disk.trace)
    ending = _continue(session, disk, clock, twin)
    if ending is not Ending.FINAL:
        _note(disk.trace[done:], expectation, pending)
        for content in PowerCuts(pending).images(random.Random(at), CUTS):
            _reopen(twin, expectation, content, Crash.POWER_CUT, found)
    return FaultRun(has_failed=True, ending=ending)


def _note(trace: list[Step], expectation: Expectation, pending: PendingDisk) -> None:
    for step, notes in moments(trace):
        pending.apply(step)
        for note in notes:
            expectation.note(note)


def _continue(
    session: FaultySession | None, disk: FaultyDisk, clock: ManualClock, workload: StoreWorkload
) -> Ending:
    """Let the disk be well; the same store must work as if nothing had been, or say why not."""
    disk.others, disk.total = 0, 1 << 40
    start = session.opened_at if session else 0
    # A script that abandons the disk has let its process die.
    if session is not None and session.is_open and disk.is_owned:
        lost = list(_failed_syncs(disk.trace[start:]))
        if lost:
            _check_final(session, names_only=all(isinstance(step, SyncNames) for step in lost))
            return Ending.FINAL
        _check_goes_on(session)
        return Ending.CONTINUED
    if any(_failed_syncs(disk.trace)):
        return Ending.FINAL
    require(not disk.is_owned, "a store that is not open keeps its lock")
    disk.abandon()
    if session is None:
        session = FaultySession(disk, clock, workload.settings)
        workload.history = session.history
    else:
        session.start()
    _check_goes_on(session)
    return Ending.STARTED


def _failed_syncs(trace: list[Step]) -> Iterator[Sync | SyncNames]:
    return (step for step in trace if isinstance(step, Sync | SyncNames) and step.failed)


def _check_final(session: FaultySession, *, names_only: bool) -> None:
    """A failed sync is told of: by every put, or, where only tables are concerned, by the stop."""
    store, failure = session.store, session.store.health.failure
    result = session.put()
    if failure is not None:
        require(isinstance(failure, SyncError), f"{failure} is taken for a failed sync")
        require(not result.is_ok and str(failure) in result.reason, "a put does not say why")
    elif not names_only:
        return  # of a table's new file, which was then written anew
    try:
        store.close()
    except DiskError:
        return
    raise ViolationError("a store that a failed sync has harmed was closed without a word")


def _check_goes_on(session: FaultySession) -> None:
    store = session.store
    session.bears = False
    require(store.health.failure is None, f"the store has failed for good: {store.health.failure}")
    if store.retention.not_writable:
        session.pass_time(session.settings.clean_resource_interval)
    session.tick()
    _check_put(session)
    session.pass_time(61_000)
    _check_put(session)
    session.consume(session.consumed + 1)
    session.persist()
    session.stop()
    require(not session.disk.exists(ABORT_NAME), "a clean stop leaves the mark of an open store")


def _check_put(session: FaultySession) -> None:
    """A message is taken, dispatched, and found."""
    store, key = session.store, f"after-{session.clock.milliseconds()}"
    result = session.put(keys=key)
    require(result.is_ok, f"the disk is well, and a put is refused: {result.reason}")
    session.tick()
    at, end = store.watermarks.dispatched, store.watermarks.confirmed
    require(at == end, f"dispatched to {at}, not to {end}")
    found = store.reads.get(TOPIC, 0, result.queue_offset, 1, max_bytes=1 << 20).records
    offsets = [record.physical_offset for record in found]
    require(offsets == [result.physical_offset], f"{offsets} is read, not the message")
    if store.settings.message_index_enable:
        offsets = [record.physical_offset for record in store.reads.by_key(TOPIC, key).records]
        require(offsets == [result.physical_offset], f"{offsets} have the key of the message")


def _reopen(
    workload: StoreWorkload,
    expectation: Expectation,
    content: Snapshot,
    crash: Crash,
    known: dict[bytes, Found],
) -> None:
    """Open what a crash left, and compare; what a crash left before is only compared.

    Args:
        known: what was found in each image, by digest.
    """
    digest = content.digest()
    if (found := known.get(digest)) is None:
        disk = RecordedDisk(content, ManualClock(START + DEAD_FOR))
        found = known[digest] = workload.examine(disk)
    expectation.check(found, crash)


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
