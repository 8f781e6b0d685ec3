"""Own a store directory: open it, tick, and leave it cleanly (docs/live-store.md).

The core of the live store: synchronous, for one thread, without a timer of its own.
`message_store` (asyncio) and `blocking` (threads) put time around it.
Upstream: `DefaultMessageStore`.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from math import inf
from typing import Self

from mqlake.errors import StoreError
from mqlake.formats import archive_manifest
from mqlake.storage.clock import Clock, SystemClock
from mqlake.storage.fork_guard import ForkGuard
from mqlake.storage.owner_lock import LOCK_NAME
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.append.appender import Appender
from mqlake.store.config_store import ConfigStore
from mqlake.store.core.durability import Durability
from mqlake.store.core.health import Health
from mqlake.store.core.live_files import LiveFiles
from mqlake.store.core.master_services import of_master
from mqlake.store.core.new_messages import NewMessages
from mqlake.store.core.puts import Puts
from mqlake.store.core.role import Role
from mqlake.store.core.ticks import Ticks
from mqlake.store.core.topic_removal import TopicRemoval
from mqlake.store.delivery.redelivery import Redelivery
from mqlake.store.delivery.scheduled import ScheduledMessages
from mqlake.store.delivery.timer_files import TimerFiles
from mqlake.store.delivery.timers import TimerMessages
from mqlake.store.delivery.transactions import Transactions
from mqlake.store.live_settings import Current, current
from mqlake.store.queues.queue_kind import kind_of
from mqlake.store.reads.arrivals import Arrivals
from mqlake.store.reads.live_reads import Live, LiveReads
from mqlake.store.recovery.abort_mark import mark_closed
from mqlake.store.recovery.recovery import Progress, Recovered, recover
from mqlake.store.replication.copies import Copies
from mqlake.store.retention.retention import Retention
from mqlake.store.services import Service, Services
from mqlake.store.settings import StoreSettings
from mqlake.store.watermarks import Watermarks

_log = logging.getLogger(__name__)


class OwnedStore:
    """A store directory that this process owns and writes. For one thread.

    Attributes:
        directory: the directory of the store.
        settings: the current settings.
        clock: the clock of everything in the store.
        recovered: what recovery found and repaired.
        log, queues, index: the files that are written.
        light: the light queues, None without `enableLmq`.
        offsets: the next offset of each queue.
        dispatcher: derives queues and index from the log.
        config: topics, groups, offsets.
        fork_guard: refuses every change of a file in a forked child.
        services: the periodic work.
        health: whether messages are accepted, and why not.
        watermarks: how far the log is written, confirmed and dispatched.
        copies: which part of the log slaves have.
        ticks: dispatch what is confirmed.
        reads: answers questions.
        retention: removes expired files.
        redelivery: puts accepted messages again, and counts those that it had to set aside.
        puts: appends messages.
        scheduled: delivers delayed messages.
        timers: delivers messages at their own delivery times.
        transactions: prepares and commits messages, and checks transactions.
        durability: syncs the log, and writes checkpoints.
        removal: deletes the messages of topics.
        role: receives a master's log, and changes between slave and master.
    """

    def __init__(
        self,
        directory: OwnedDirectory,
        settings: Current[StoreSettings],
        clock: Clock,
        *,
        found: Recovered,
        config: ConfigStore,
        timer_files: TimerFiles,
        held: ExitStack,
    ) -> None:
        """Args: `held`: closed when the directory is released."""
        self.directory, self._settings, self.clock, self._held = directory, settings, clock, held
        self.recovered, self.config = found.report, config
        self._unlisted_batches, arrivals = found.batch_topics, Arrivals()
        files = LiveFiles.of(
            found,
            settings.now.message_delay_level,
            has_batches=self._has_batches,
            on_batches=lambda: self.reads.forget(),  # noqa: PLW0108 (it is made later)
            arrived=NewMessages(settings, found.offsets, arrivals).note,
            on_restart=self._restarted,
        )
        self.log, self.queues, self.index = files.log, files.queues, files.index
        self.light = files.light
        self.offsets, self.dispatcher = files.offsets, files.dispatcher
        self.fork_guard = guard = ForkGuard(directory.describe(), self._enter_child)
        self.retention = self._make_retention(files)
        self._appender = Appender(self.log, self.offsets, settings, clock, self._has_batches)
        self.services = Services(clock)
        self.health = health = Health(self.services, self.retention, self._appender)
        self.copies = Copies(settings, lambda: self.log.end)
        self.watermarks = Watermarks(
            self.log, self.dispatcher, settings.now.flush_disk_type, self.copies
        )
        self.ticks = Ticks(files, self.watermarks, clock, health, guard)
        self.reads = self._make_reads(files, arrivals)
        self.retention.on_trim(self.reads.mapped.clear)
        self.redelivery = again = Redelivery(
            self._appender.put_again, self._appender.put_again_without_crc, config
        )
        self.puts = Puts(self._appender, again, self.ticks, settings, clock, guard)
        self.scheduled = ScheduledMessages(
            self.log, self.queues, config.delay_offsets, again, settings.now, clock
        )
        self.timers = TimerMessages(timer_files, self.log, self.queues, again, settings, clock)
        self.transactions = self._make_transactions()
        self.durability = Durability(files, settings, clock, health, self.ticks, guard)
        self.removal = TopicRemoval(
            files, settings, config, self.durability, health, self.reads.forget
        )
        self.role = self._make_role(files)
        self.services.begin(self._services())

    def _make_retention(self, files: LiveFiles) -> Retention:
        return Retention(
            directory=self.directory,
            log=files.log,
            queues=files.queues,
            index=files.index,
            light=files.light,
            checkpoint=files.checkpoint,
            settings=self._settings,
            clock=self.clock,
        )

    def _make_reads(self, files: LiveFiles, arrivals: Arrivals) -> LiveReads:
        return LiveReads(
            Live(
                log=files.log,
                queues=files.queues,
                index=files.index,
                dispatcher=files.dispatcher,
                settings=self._settings,
                watermarks=self.watermarks,
                arrivals=arrivals,
                catch_up=self.tick,
                dialect=files.dialect,
                incarnations=files.incarnations,
            )
        )

    def _make_transactions(self) -> Transactions:
        return Transactions(
            log=self.log,
            queues=self.queues,
            config=self.config,
            put=self._appender.put,
            redelivery=self.redelivery,
            put_final=self.puts.put_again,
            settings=self._settings,
            clock=self.clock,
        )

    def _make_role(self, files: LiveFiles) -> Role:
        return Role(
            files,
            self._settings,
            self.config,
            self.copies,
            durability=self.durability,
            removal=self.removal,
            ticks=self.ticks,
            health=self.health,
            fork_guard=self.fork_guard,
            where=self.directory.describe(),
        )

    def _has_batches(self, topic: str) -> bool:
        """Return whether a topic's queues are batch consume queues.

        If the topic has no settings, its files have shown it when the store was opened.
        """
        known = self.config.topics.get(topic)
        return topic in self._unlisted_batches if known is None else kind_of(known).has_batches

    def _restarted(self, topic: str, before: int) -> None:
        self.role.restarted(topic, before)

    def _services(self) -> list[Service]:
        scheduled, timers, transactions = self.scheduled, self.timers, self.transactions
        return [
            *self.durability.services(),
            *self.removal.services(),
            *self.retention.services(),
            *of_master(scheduled.services(), scheduled.begin, self._settings),
            *of_master(timers.services(), timers.begin, self._settings),
            timers.file_service(),
            *of_master(transactions.services(), transactions.begin, self._settings),
            *self.redelivery.services(),
            *self.config.services(),
        ]

    def _enter_child(self) -> None:
        """Do nothing more in a forked child: the parent continues to write these files."""
        self._appender.shut_down(self.fork_guard.reason)
        self.services.begin([])

    @classmethod
    def open(
        cls,
        directory: OwnedDirectory,
        settings: StoreSettings | Current[StoreSettings] | None = None,
        clock: Clock | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Take ownership of the directory, recover its contents, and be ready for messages.

        Args:
            settings: fixed settings, or settings that their owner may replace.

        Raises:
            StoreError: another process owns the directory, or its contents cannot be opened, or it
                is an archive.
            DiskError: the disk failed.
        """
        settings, clock = current(settings or StoreSettings()), clock or SystemClock()
        held = ExitStack()
        try:
            held.enter_context(directory.own(LOCK_NAME))
            _refuse_archive(directory)
            found = recover(directory, settings.now, clock, progress)
            config = ConfigStore.load(directory, settings, clock, found.incarnations)
            timer_files = TimerFiles.open(directory, settings.now)
            store = cls(
                directory,
                settings,
                clock,
                found=found,
                config=config,
                timer_files=timer_files,
                held=held,
            )
        except BaseException:
            held.close()
            raise
        if not settings.now.is_slave:
            for job in store.role.clamp_offsets():
                if job is not None:
                    job.run()
                    job.done()
        return store

    @property
    def settings(self) -> StoreSettings:
        """Return the current settings."""
        return self._settings.now

    def tick(self, seconds: float = inf) -> bool:
        """Dispatch everything that is confirmed; return whether that is done, or failed.

        If it fails, the store accepts no messages until a later tick succeeds. Once the store is
        shut down, dispatch is left to `close`, which another thread may be running.

        Args:
            seconds: the time after which the rest is left to the next tick.

        Raises:
            StoreError: this process is a child, forked since the store was opened.
        """
        return self.ticks.run(seconds)

    def shut_down(self) -> None:
        """Accept no more messages, because the store is about to be closed."""
        # Closing dispatches all that is kept.
        self.copies.release()
        self.health.shut_down()

    def close(self) -> None:
        """Stop cleanly: dispatch everything, make it durable, and release the directory.

        Raises:
            StoreError: the store failed, now or before: the next start recovers. Or this process is
                a child, forked since the store was opened: the directory stays the parent's.
        """
        self.fork_guard.check()
        self.shut_down()
        self.reads.arrivals.close()
        with self._held:
            try:
                self._stop()
            except BaseException:
                self._keep_tables()
                raise
            finally:
                self._close_files()

    def _stop(self) -> None:
        self.durability.sync_log()
        self.scheduled.keep()
        self.transactions.keep()
        self.config.persist()
        self.timers.close()
        if self.health.dispatch_failure is not None:
            raise self.health.dispatch_failure
        self.durability.checkpoint()
        self.durability.mark_clean()
        mark_closed(self.directory)

    def _keep_tables(self) -> None:
        """Write topics, groups and offsets of a store that cannot be stopped cleanly."""
        try:
            self.config.persist()
        except Exception as error:  # noqa: BLE001 (why it cannot be stopped is what is raised)
            _log.error("topics, groups and offsets could not be written: %s", error)

    def abandon(self) -> None:
        """Release the directory as it is; the next start recovers."""
        self.fork_guard.check()
        self.shut_down()
        self.reads.arrivals.close()
        with self._held:
            self._close_files()

    def _close_files(self) -> None:
        self.queues.files.close()
        self.index.close()
        if self.light is not None:
            self.light.close()
        self.log.close()


def _refuse_archive(directory: OwnedDirectory) -> None:
    """Refuse to write to an archive: its segments have no zeros at their ends, and its manifest has
    the digest of each file.
    """
    if directory.exists(archive_manifest.NAME):
        raise StoreError(
            f"{directory.describe(archive_manifest.NAME)}: this directory is an archive: restore "
            "the store into another one (docs/archive.md)"
        )
