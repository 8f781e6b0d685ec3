"""Delete the messages of topics (docs/live-store.md, "Deleting topics").

Upstream: `DefaultMessageStore.deleteTopics`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from time import perf_counter

from mqlake.errors import SyncError
from mqlake.formats.topic_names import WAITING
from mqlake.store.config_store import ConfigStore
from mqlake.store.core.durability import LINKS_INTERVAL, Durability
from mqlake.store.core.health import Health
from mqlake.store.core.live_files import LiveFiles
from mqlake.store.live_settings import Current
from mqlake.store.services import Job, Service
from mqlake.store.settings import StoreSettings

_BURIAL_INTERVAL, _BURIAL_TURN = 50, 0.002
"""Milliseconds between turns in which files of deleted topics are removed, and seconds of each."""

_PRUNE_INTERVAL = 60_000
"""Milliseconds between checks for incarnations that may be forgotten."""


class TopicRemoval:
    """Ends the incarnations of a store's topics, and removes their files. For the store's thread.

    Args:
        forget: called when queues have ended, for readers that keep what they found of them.
    """

    def __init__(
        self,
        files: LiveFiles,
        settings: Current[StoreSettings],
        config: ConfigStore,
        durability: Durability,
        health: Health,
        forget: Callable[[], object],
    ) -> None:
        self._log, self._queues, self._offsets = files.log, files.queues, files.offsets
        self._light = files.light
        self._dispatcher, self._settings, self._config = files.dispatcher, settings, config
        self._durability, self._health, self._forget = durability, health, forget

    def end(self, topic: str, before: int | None = None) -> int:
        """Mark the incarnation of a topic as dead: its queues are empty, and begin with 0 again.

        The table of incarnations is to be written, and then the queues' files removed: `steps`
        does all of it, and otherwise services do.

        Args:
            before: the physical offset before which records are dead; by default, the log's end.

        Returns:
            The number of the queues.

        Raises:
            StoreError: an entry of a queue cannot be read; nothing was done.
        """
        ended = self._queues.end(topic, before)
        waiting = self._undispatched(topic)
        if ended or waiting or before is not None or self._has_waiting_messages():
            end = (self._log.end, self._log.end) if before is None else (before,)
            self._config.incarnations.end_topic(topic, *end)
        if self._light is not None:
            self._light.end(topic)
        if ended:
            self._dispatcher.forget_queues()
            self._forget()
        for queue_id in {*ended, *waiting}:
            self._offsets.remove(topic, queue_id)
        # Nothing may derive the entries again.
        self._durability.expect_checkpoint()
        return len(ended)

    def _has_waiting_messages(self) -> bool:
        """Return whether messages may wait for a topic that has no queue yet."""
        is_dispatched = self._dispatcher.position >= self._log.end
        return not is_dispatched or any(self._queues.ids(topic) for topic in WAITING)

    def _undispatched(self, topic: str) -> list[int]:
        """Return the queues of a topic that have been put messages which are not dispatched yet."""
        if self._settings.now.is_slave or self._dispatcher.position >= self._log.end:
            return []
        return [queue_id for name, queue_id in self._offsets if name == topic]

    def remove(self, topic: str) -> None:
        """Delete a topic's messages, its queues, and the groups' offsets in them, durably.

        The records stay in the log, but nothing derives queues from them again.

        Raises:
            SyncError: the disk failed; the store accepts no more messages.
            DiskError: the disk refused an operation; the same call completes it.
        """
        for job in self.steps(topic):
            if job is not None:
                self._durability.complete(job)

    def steps(self, topic: str, before: int | None = None) -> Generator[Job | None]:
        """Do what `remove` does, one file at a time: thousands of queues take seconds.

        Messages that are put after the first step belong to the topic's next incarnation.

        Args:
            before: on a slave, the physical offset before which the master has deleted the topic:
                queues with later messages stay, and the offsets of groups, which are the master's.

        Yields:
            The waits for the disk; to be run, in any thread, before it continues. None after each
            other step, so that others are served.

        Raises:
            SyncError: as for `remove`.
            DiskError: as for `remove`.
        """
        self.end(topic, before)
        # This comes first: a stop at any moment after it leaves a deleted topic, whatever is left
        # of its files. The log comes before it: no power loss leaves a log that ends earlier.
        yield self._log.unsynced()
        if (table := self._config.incarnations.write()) is not None:
            yield table
        consumer_offsets = self._config.consumer_offsets
        for group in consumer_offsets.groups_of(topic) if before is None else ():
            consumer_offsets.remove(group, topic)
            yield None
        try:
            for _ in self._queues.burial(topic):
                yield None
            if self._light is not None:
                self._light.bury()
        except SyncError as error:
            self._health.fail(error)
            raise
        yield self._durability.pending_checkpoint()

    # Services

    def services(self) -> list[Service]:
        """Return the services that remove files of ended queues, and forget incarnations."""
        return [
            Service(self._burial_interval, self._bury, "deletedQueues"),
            Service(_PRUNE_INTERVAL, self._prune, "incarnations"),
        ]

    def _burial_interval(self) -> int:
        return _BURIAL_INTERVAL if self._queues.has_dead else LINKS_INTERVAL

    def _bury(self) -> None:
        """Remove files of dead queues, after the table of incarnations says that they are dead."""
        incarnations = self._config.incarnations
        if not incarnations.is_kept(incarnations.changes):
            return
        if self._light is not None:
            self._light.bury()
        if not self._queues.has_dead:
            return
        until = perf_counter() + _BURIAL_TURN
        for _ in self._queues.burial():
            if perf_counter() >= until:
                break

    def _prune(self) -> None:
        """Forget the incarnations of names that the log and the tables no longer have."""
        config, queues = self._config, self._queues
        config.incarnations.prune(
            self._log.min_offset,
            lambda topic: topic in config.topics or bool(queues.ids(topic)),
            lambda group: group in config.groups or bool(config.consumer_offsets.topics_of(group)),
        )
