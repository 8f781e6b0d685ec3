"""The parts of a live store put together by hand: a log, its queues, and a clock that stands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mqlake.formats.record import Record, decode
from mqlake.storage.clock import Clock
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.append.appender import Appender
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutResult
from mqlake.store.config_store import ConfigStore
from mqlake.store.core.live_files import LiveFiles
from mqlake.store.live_settings import current
from mqlake.store.recovery.recovery import recover
from mqlake.store.settings import StoreSettings
from tests.crash.clock import ManualClock

NOW = 1_800_000_000_000


class LiveParts:
    """A store in a directory: new, or recovered from what is there. Not closed: dropped."""

    def __init__(
        self,
        path: Path | OwnedDirectory,
        settings: StoreSettings | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.settings = settings or StoreSettings(
            mapped_file_size_commit_log=1 << 20, max_hash_slot_num=100, max_index_num=400
        )
        self.clock = clock or ManualClock(NOW)
        self.directory = LocalOwnedDirectory(path) if isinstance(path, Path) else path
        found = recover(self.directory, self.settings, self.clock, None)
        files = LiveFiles.of(
            found,
            self.settings.message_delay_level,
            has_batches=found.batch_topics.__contains__,
            on_batches=lambda: None,
            arrived=self.arrived,
            on_restart=self.restarted,
        )
        self.log, self.queues, self.index = files.log, files.queues, files.index
        self.dispatcher, self.offsets = files.dispatcher, files.offsets
        self.appender = Appender(self.log, self.offsets, current(self.settings), self.clock)
        self.config = ConfigStore.load(self.directory, current(self.settings), self.clock)

    def arrived(self, topic: str, queue_id: int, end: int) -> None:
        """Do nothing when a queue has got messages."""

    def restarted(self, topic: str, before: int) -> None:
        """Do nothing when a topic begins again."""

    def put(self, message: Message) -> PutResult:
        """Append a message and dispatch it."""
        (result,) = self.put_many([message])
        return result

    def put_many(self, messages: Sequence[Message]) -> list[PutResult]:
        """Append messages and dispatch them."""
        results = self.appender.put_many(messages)
        self.tick()
        return results

    def tick(self) -> None:
        """Dispatch all there is."""
        self.dispatcher.run(self.log.end)

    def records(self, topic: str, queue_id: int = 0) -> list[Record]:
        """Return all messages of a queue."""
        queue = self.queues.queue(topic, queue_id)
        start = self.queues.min_offset(topic, queue_id)
        entries = [queue.entry(number) for number in range(start, queue.end)]
        return [
            decode(self.log.read(entry.physical_offset, entry.size)) for entry in entries if entry
        ]
