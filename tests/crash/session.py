"""A live store at work on a recorded disk, noting what it promises."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from mqlake.formats import checkpoint, record, record_crc, sys_flag
from mqlake.formats.config.topics import BATCH_QUEUES, QUEUE_TYPE, Topic
from mqlake.formats.message_batch import encode_batch
from mqlake.formats.properties import encode_properties
from mqlake.storage.read_file import read_file
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.put_result import PutResult
from mqlake.store.owned_store import OwnedStore
from mqlake.store.settings import StoreSettings
from mqlake.store.snapshot import CHECKPOINT_NAME
from tests.crash import odd
from tests.crash.clock import ManualClock
from tests.crash.disk import RecordedDisk
from tests.crash.expectation import (
    BATCHES,
    Acknowledged,
    Durable,
    Retired,
    Sent,
    ValueDropped,
    ValueKept,
    ValueSet,
)
from tests.crash.log_walk import LogRecord, walk
from tests.crash.trace import Note

T = TypeVar("T")

GROUP, TOPIC = "readers", "orders"
OFFSET = "consumer offset"

_HOUR = 3600


def end_of(topic: str) -> str:
    """Return the name of the value that says where a topic's incarnation ended."""
    return f"end of {topic}"


class Session:
    """A store and who uses it. Messages are known by their physical offset.

    Attributes:
        history: all bytes that were ever a record at a physical offset.
        has_lost_files: somebody has removed some since the store was opened.
    """

    def __init__(self, disk: RecordedDisk, clock: ManualClock, settings: StoreSettings) -> None:
        self.disk, self.clock, self.settings = disk, clock, settings
        self.history: dict[int, set[bytes]] = {}
        self._acknowledged: dict[int, LogRecord] = {}
        self._durable: set[int] = set()
        self.consumed = 0
        self._bodies = 0
        self.has_lost_files = False
        self.store = self._open()

    def _open(self) -> OwnedStore:
        return OwnedStore.open(self.disk, self.settings, self.clock)

    # Put

    def message(self, size: int = 20, **fields: object) -> Message:
        """Return a message unlike all others, with a body of `size` bytes."""
        self._bodies += 1
        body = f"{self._bodies}:".encode() + b"ABCDEFGHIJ" * (size // 10 + 1)
        defaults = {"topic": TOPIC, "tags": "red", "keys": f"k{self._bodies} all"}
        return Message(**{**defaults, **fields, "body": body[:size]})

    def put(self, size: int = 20, **fields: object) -> PutResult:
        """Put one message, as a producer does that waits for the answer."""
        message = self.message(size, **fields)
        return self.send(lambda: [self.store.puts.put(message)])[0]

    def odd_message(self, properties: bytes, body: int | None = None) -> Message:
        """Return a message with properties as they are stored, and one of `odd.bodies`."""
        self._bodies += 1
        at = self.store.log.end + record.HEAD_SIZES[0]
        bodies = [*odd.bodies(at)]
        number = self._bodies if body is None else body
        return Message(TOPIC, bodies[number % len(bodies)], encoded_properties=properties)

    def put_odd(self, properties: bytes, body: int | None = None) -> None:
        """Put a message of that kind."""
        message = self.odd_message(properties, body)
        self.send(lambda: [self.store.puts.put(message)])

    def put_odd_batch(self, properties: Sequence[bytes]) -> None:
        """Put a batch of messages with these properties."""
        messages = [self.odd_message(each) for each in properties]
        body = encode_batch((0, each.body, each.encoded_properties or b"") for each in messages)
        self.send(lambda: [self.store.puts.put_batch(MessageBatch(TOPIC, body))])

    def put_plain(self, size: int) -> None:
        """Put a message without properties of its own whose record has `size` bytes."""
        message = self.message(size, tags=None, keys=())
        message.body = message.body[: size - RECORD_OVERHEAD - len(TOPIC)]
        self.send(lambda: [self.store.puts.put(message)])

    def put_many(self, messages: Sequence[Message]) -> None:
        """Put messages in one call."""
        self.send(lambda: self.store.puts.put_many(messages))

    def put_batch(self, sizes: Sequence[int], **fields: object) -> None:
        """Put a batch of messages with bodies of these sizes."""
        messages = [self.message(size) for size in sizes]
        body = encode_batch(
            (0, message.body, encode_properties({"KEYS": str(message.keys)}))
            for message in messages
        )
        batch = MessageBatch(TOPIC, body, **fields)
        self.send(lambda: [self.store.puts.put_batch(batch)])

    def make_batch_topic(self) -> None:
        """Create the topic with batch consume queues, which is kept before it is answered."""
        self.store.config.topics.put(Topic(BATCHES, attributes={QUEUE_TYPE: BATCH_QUEUES}))
        self.persist()

    def put_inner(self, sizes: Sequence[int], **fields: object) -> None:
        """Put an inner batch of messages with bodies of these sizes."""
        messages = [self.message(size) for size in sizes]
        body = encode_batch((0, message.body, b"") for message in messages)
        key = encode_properties({"UNIQ_KEY": f"u{self._bodies}", "KEYS": f"k{self._bodies}"})
        batch = MessageBatch(BATCHES, body, encoded_properties=key, is_inner=True, **fields)
        self.send(lambda: [self.store.puts.put_batch(batch)])

    def send(self, act: Callable[[], Sequence[PutResult]]) -> Sequence[PutResult]:
        """Let the store put something, and wait until it is acknowledged."""
        results = self.do(act)
        assert all(result.is_ok for result in results), results
        if not self.store.watermarks.confirms_at_append:
            self.flush()
        return results

    def do(self, act: Callable[[], T]) -> T:
        """Let the store do something; what it appends counts as acknowledged thereafter."""
        start = len(self.disk.trace)
        try:
            result = act()
        finally:
            fresh = self._note_sent(start)
        self._acknowledge(fresh)
        return result

    def _acknowledge(self, fresh: Iterable[LogRecord]) -> None:
        for found in fresh:
            self._acknowledged[found.record.physical_offset] = found
            self.disk.record(Note(Acknowledged(found.record.physical_offset)))

    def _note_sent(self, start: int) -> list[LogRecord]:
        """Note, from a step of the trace on, the records that were not there before."""
        fresh = [
            found
            for found in walk(self.disk.bystander()).records
            if found.data not in self.history.get(found.record.physical_offset, ())
        ]
        for found in fresh:
            offset = found.record.physical_offset
            self.history.setdefault(offset, set()).add(found.data)
            self.disk.trace.insert(start, Note(Sent(offset)))
            if sys_flag.is_queued(found.record.sys_flag):
                self.disk.trace.insert(start, Note(ValueSet(*_next(found))))
        return fresh

    # Durability

    def tick(self) -> None:
        """Dispatch."""
        self.do(self.store.tick)

    def flush(self) -> None:
        """Sync the log, as a group commit or the flush interval does."""
        waiting = dict(self._acknowledged)
        self.do(self.store.durability.sync_log)
        self._keep(waiting)

    def flush_around(self, act: Callable[[], object]) -> None:
        """Sync the log while something else happens: what that puts is not covered."""
        waiting = dict(self._acknowledged)
        job = self.store.log.unsynced()
        act()
        job.run()
        act()
        job.done()
        self._keep(waiting)
        self.tick()

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass, and the store do what falls due, as its facades do."""
        self.clock.forward(milliseconds)
        is_old = self.clock.monotonic() > self.settings.file_reserved_time * _HOUR
        if is_old or self.settings.max_commit_log_bytes:
            self.retain(self._serve)
        else:
            self._serve()

    def _serve(self) -> None:
        while self.start_due():
            pass
        self.tick()
        flushed = self.store.log.flushed
        self._keep({at: found for at, found in self._acknowledged.items() if at < flushed})

    def start_due(self) -> bool:
        """Let the store do one thing that is due; say whether there may be more."""
        job = self.do(self.store.services.due)
        if job is not None:
            job.run()
            self.do(job.done)
        return job is not None

    def checkpoint(self) -> None:
        """Sync everything and move the checkpoint."""
        waiting = dict(self._acknowledged)
        self.do(self.store.durability.checkpoint)
        self._keep(waiting)

    def _keep(self, waiting: dict[int, LogRecord]) -> None:
        for offset, found in waiting.items():
            if offset not in self._durable:
                self._durable.add(offset)
                self.disk.record(Note(Durable(offset)))
                if sys_flag.is_queued(found.record.sys_flag):
                    self.disk.record(Note(ValueKept(*_next(found))))

    # Stop and start

    def stop(self) -> None:
        """Stop cleanly."""
        self.do(self.store.close)
        self._keep(self._acknowledged)

    def start(self) -> None:
        """Open the store again."""
        self.clock.forward(1000)
        self.store = self._open()
        self.has_lost_files = False

    def lose(self, path: str) -> None:
        """Let somebody remove a file, or a directory of files, of the store, which is not open."""
        folder = path.rpartition("/")[0]
        self.disk.sync_directory(folder)  # what retention removed was removed before
        self.has_lost_files = True
        if self.disk.is_directory(path):
            for name in self.disk.names(path):
                self.disk.remove(f"{path}/{name}")
            self.disk.remove_directory(path)
        else:
            self.disk.remove(path)
        self.disk.sync_directory(folder)

    def hand_over(self) -> None:
        """Let the checkpoint of the store, which is not open, be one that RocketMQ leaves."""
        data = read_file(self.disk, CHECKPOINT_NAME, checkpoint.SIZE)
        assert data is not None
        fields = checkpoint.decode(data)
        file = self.disk.open_writable(CHECKPOINT_NAME)
        file.write(0, checkpoint.encode(fields, self.settings.index_dialect))
        file.sync()
        file.close()

    def restart(self) -> None:
        """Stop cleanly, and start."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """End the process, and start another one."""
        self.disk.abandon()
        self.start()

    # Config

    def consume(self, offset: int) -> None:
        """Let the group say where it goes on; in memory only."""
        self.consumed = offset
        self.disk.record(Note(ValueSet(OFFSET, offset)))
        self.store.config.consumer_offsets.commit(GROUP, TOPIC, 0, offset)

    def persist(self) -> None:
        """Write what changed of the config."""
        self.store.config.persist()
        self.disk.record(Note(ValueKept(OFFSET, self.consumed)))

    # Deletion

    def delete(self, topic: str) -> None:
        """Delete a topic: once that has returned, its messages are dead whatever happens."""
        name, end = end_of(topic), self.store.log.end
        for queue in self.store.offsets:
            if queue[0] == topic:
                self.disk.record(Note(ValueDropped(f"next of {queue}")))
        self.disk.record(Note(ValueSet(name, end)))
        self.store.removal.remove(topic)
        self.disk.record(Note(ValueKept(name, end)))
        living = ((at, each) for at, each in self._acknowledged.items() if each.queue[0] != topic)
        self._acknowledged = dict(living)

    # Retention

    def remove_next(self) -> None:
        """Let retention remove the next file, as the store's services do."""

        def remove() -> None:
            if (job := self.store.retention.remove_next()) is not None:
                job.complete()

        self.retain(remove)

    def retain(self, act: Callable[[], object]) -> None:
        """Let the store delete files; all but the last may go."""
        looker = self.disk.bystander()
        *_, last = [0, *map(int, looker.names("commitlog"))]
        for found in walk(looker).records:
            if found.record.physical_offset < last:
                self.disk.record(Note(Retired(found.record.physical_offset)))
        act()
        for found in walk(self.disk.bystander()).records:
            offset = found.record.physical_offset
            self.disk.record(Note(Acknowledged(offset)))
            if offset in self._durable:
                self.disk.record(Note(Durable(offset)))


RECORD_OVERHEAD = record.MIN_SIZE + record_crc.SIZE
"""Bytes of a V1 record with IPv4 hosts besides body, topic and the message's properties."""


def _next(found: LogRecord) -> tuple[str, int]:
    return f"next of {found.queue}", found.unit.end_offset
