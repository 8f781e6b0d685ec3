"""Recover a store directory when it is opened (docs/live-store.md, "Recovery").

Upstream: `DefaultMessageStore.load`, `CommitLog.recoverNormally` and `recoverAbnormally`,
`truncateDirtyLogicFiles`, `recoverTopicQueueTable`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from mqlake.formats.dialect import Dialect
from mqlake.formats.record import Fault
from mqlake.storage.clock import Clock
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.dispatch.dispatcher import Arrived, Dispatcher
from mqlake.store.log.owned_log import OwnedCommitLog, open_owned_log
from mqlake.store.log.segments import CommitLog
from mqlake.store.recovery.commit import Commit, Committed
from mqlake.store.recovery.derive import Facts, derive
from mqlake.store.recovery.find import StoreContents, find
from mqlake.store.recovery.log_walk import Progress
from mqlake.store.recovery.plan import settle
from mqlake.store.report import CutOffReport
from mqlake.store.settings import StoreSettings

_LONG = 8 << 20
"""Bytes of log from which a thread pays off."""


class RecoveryReport(msgspec.Struct, frozen=True, rename="camel"):
    """What opening a store found and repaired.

    Attributes:
        is_clean: whether the last process stopped cleanly.
        dialect: the RocketMQ version whose index rules apply.
        start: physical offset from which the log was read.
        log_end: physical offset of the log's end.
        fault: the result of the check at the log's end.
        records: records that were dispatched.
        queues: queues that have files.
        queue_entries: queue entries that were written again.
        refused: records without a queue entry, because their queue offset is implausible.
        is_rebuilt: whether queue entries were missing that should exist, so that all queues were
            derived from the log again.
        cut_off: what was cut off the log although it has good records, and where it is kept.
    """

    is_clean: bool
    dialect: Dialect
    start: int
    log_end: int
    fault: Fault
    records: int
    queues: int
    queue_entries: int
    refused: int
    is_rebuilt: bool
    cut_off: tuple[CutOffReport, ...] = ()


@dataclass(frozen=True)
class Derived(Committed):
    """The files derived from a log, complete up to its end."""

    report: RecoveryReport

    def dispatcher(
        self,
        log: CommitLog,
        message_delay_level: str,
        *,
        arrived: Arrived | None = None,
        on_restart: Callable[[str, int], object] | None = None,
    ) -> Dispatcher:
        """Return what dispatches the log's further records.

        Args:
            message_delay_level: the setting of that name.
            arrived, on_restart: see `Dispatcher`.
        """
        dispatcher = Dispatcher(
            log,
            self.queues,
            self.index,
            self.incarnations,
            dialect=self.report.dialect,
            message_delay_level=message_delay_level,
            done=self.dispatched,
            across_gaps=self.crosses_gaps,
            arrived=arrived,
            on_restart=on_restart,
        )
        if self.light is not None:
            dispatcher.derive_light_queues(self.light)
        return dispatcher


@dataclass(frozen=True)
class Recovered(Derived):
    """A store that is ready for appends."""

    log: OwnedCommitLog


def recover(
    directory: OwnedDirectory,
    settings: StoreSettings,
    clock: Clock,
    progress: Progress | None = None,
) -> Recovered:
    """Find what is durable of a store, complete the derived files, and zero the rest.

    Everything is durable when it returns, and the checkpoint records that: the next recovery has
    nothing to do. It may be interrupted at any moment, and called again.

    Args:
        directory: the directory, which this process has locked.
        progress: called at intervals with the progress.

    Raises:
        StoreError: the store cannot be opened.
        DiskError: the disk failed.
    """
    log = open_owned_log(directory, settings.mapped_file_size_commit_log)
    return Recovered(**vars(_recover(directory, settings, clock, log, log, progress)), log=log)


def recover_derived(
    directory: OwnedDirectory,
    settings: StoreSettings,
    clock: Clock,
    log: CommitLog,
    progress: Progress | None = None,
) -> Derived:
    """Complete the derived files of a log that another program writes: `recover` without changing
    the log.

    Args:
        directory: the directory, which this process has locked.
        log: the log of this directory.

    Raises:
        StoreError: the store cannot be opened.
        DiskError: the disk failed.
    """
    return _recover(directory, settings, clock, log, None, progress)


def _recover(
    directory: OwnedDirectory,
    settings: StoreSettings,
    clock: Clock,
    log: CommitLog,
    owned: OwnedCommitLog | None,
    progress: Progress | None,
) -> Derived:
    """Args: `owned`: the same log if it may be cut, None if it must not be."""
    owns_log = owned is not None
    found = find(directory, log, settings, owns_log=owns_log)
    with _synced_beside(owned, found) as syncing:
        facts = derive(found, directory, log, settings, progress, owns_log=owns_log)
        plan = settle(found, facts, settings, owns_log=owns_log)
        commit = Commit(
            plan=plan,
            found=found,
            directory=directory,
            log=log,
            owned=owned,
            settings=settings,
            clock=clock,
        )
        done = commit.run(syncing, progress)
    return Derived(**vars(done), report=_report(found, facts, done))


@contextmanager
def _synced_beside(
    log: OwnedCommitLog | None, found: StoreContents
) -> Generator[Future[None] | None]:
    """Sync a long log while it is read: a process that died may have left much of it unsynced.

    That changes no byte. Cutting the log syncs the rest.

    Yields:
        The running sync; None if the log is short.
    """
    synced = found.point.position if found.point else 0
    if log is None or log.limit - synced <= _LONG:
        yield None
        return
    with ThreadPoolExecutor(1) as beside:
        yield beside.submit(log.files.sync, list(log.segments), synced)


def _report(found: StoreContents, facts: Facts, done: Committed) -> RecoveryReport:
    return RecoveryReport(
        is_clean=found.is_clean,
        dialect=found.dialect,
        start=facts.start,
        log_end=facts.walked.end,
        fault=facts.walked.fault,
        records=done.dispatched.count,
        queues=len(done.queues.queues()),
        queue_entries=done.dispatched.entries,
        refused=done.dispatched.refused,
        is_rebuilt=facts.is_broken,
        cut_off=done.cut_off,
    )
