"""Any sequence of puts, pulls, commits, rolls, deletions, crashes and starts, beside a model.

The model is the list of all messages in the order of the log, and how many of them are certain.
"""

from __future__ import annotations

import os
import random
from typing import NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mqlake.formats.message_batch import encode_batch
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.owned_store import OwnedStore
from mqlake.store.settings import FlushDiskType, StoreSettings
from tests.crash.clock import ManualClock
from tests.crash.disk import RecordedDisk
from tests.crash.images import Limits, PowerCuts
from tests.crash.log_walk import walk
from tests.crash.oracles import check_index, check_queues
from tests.crash.pending import PendingDisk
from tests.crash.snapshot import Snapshot

QUEUES = (("orders", 0), ("orders", 1), ("mail", 0))
EXPIRED = 73 * 3_600_000
FILE_SIZE = 2048


class Sent(NamedTuple):
    """A message of the model."""

    topic: str
    queue_id: int
    body: bytes


class LiveStore(RuleBasedStateMachine):
    """A live store on a recorded disk, and what must be in it."""

    store: OwnedStore

    @initialize(flush=st.sampled_from(FlushDiskType), entries=st.sampled_from((2, 5)))
    def begin(self, flush: FlushDiskType, entries: int) -> None:
        self.settings = StoreSettings(
            flush_disk_type=flush,
            mapped_file_size_commit_log=FILE_SIZE,
            mapped_file_size_consume_queue=20 * entries,
            max_hash_slot_num=2,
            max_index_num=8,
        )
        self.clock = ManualClock()
        self.disk = RecordedDisk(clock=self.clock)
        self.certain = PendingDisk(self.disk.snapshot())
        self.log: list[Sent] = []
        self.removed = self.durable = self.count = 0
        self.offsets: dict[tuple[str, int], int] = {}
        self.store = self._open()

    def _open(self) -> OwnedStore:
        self.clock.forward(1)
        return OwnedStore.open(self.disk, self.settings, self.clock)

    def _message(self, queue: tuple[str, int], size: int) -> Message:
        self.count += 1
        body = f"{self.count}:".encode().ljust(size, b"x")
        return Message(queue[0], body, queue_id=queue[1], tags="red", keys=f"k{self.count}")

    def _note(self, *messages: Message) -> None:
        self.log += [Sent(each.topic, each.queue_id, each.body) for each in messages]

    # Put

    @rule(queue=st.sampled_from(QUEUES), size=st.integers(0, 300))
    def put(self, queue: tuple[str, int], size: int) -> None:
        message = self._message(queue, size)
        result = self.store.puts.put(message)
        assert result.is_ok
        assert result.queue_offset == self._queue_length(queue)
        self._note(message)

    @rule(queue=st.sampled_from(QUEUES))
    def roll(self, queue: tuple[str, int]) -> None:
        message = self._message(queue, FILE_SIZE - 300)
        assert self.store.puts.put(message).is_ok
        self._note(message)

    @rule(queues=st.lists(st.sampled_from(QUEUES), max_size=5))
    def put_many(self, queues: list[tuple[str, int]]) -> None:
        messages = [self._message(queue, 30) for queue in queues]
        assert all(result.is_ok for result in self.store.puts.put_many(messages))
        self._note(*messages)

    @rule(queue=st.sampled_from(QUEUES), count=st.integers(1, 4))
    def batch(self, queue: tuple[str, int], count: int) -> None:
        messages = [self._message(queue, 20) for _ in range(count)]
        body = encode_batch((0, message.body, b"") for message in messages)
        assert self.store.puts.put_batch(MessageBatch(queue[0], body, queue_id=queue[1])).is_ok
        self._note(*messages)

    def _queue_length(self, queue: tuple[str, int]) -> int:
        return sum((sent.topic, sent.queue_id) == queue for sent in self.log)

    # Dispatch and durability

    @rule()
    def tick(self) -> None:
        self.store.tick()

    @rule()
    def flush(self) -> None:
        self.store.durability.sync_log()
        self.durable = len(self.log)

    @rule()
    def checkpoint(self) -> None:
        self.store.durability.checkpoint()
        self.durable = len(self.log)

    # Read

    @rule(queue=st.sampled_from(QUEUES), share=st.floats(0, 1), most=st.integers(1, 9))
    def pull(self, queue: tuple[str, int], share: float, most: int) -> None:
        self.store.tick()
        known = self.store.reads.queue(*queue)
        offset = known.min_offset + int(share * (known.max_offset - known.min_offset))
        found = self.store.reads.get(*queue, offset, most).records
        bodies = [sent.body for sent in self.log if (sent.topic, sent.queue_id) == queue]
        end = min(offset + most, known.max_offset)
        assert [record.body for record in found] == bodies[offset:end]

    # Config

    @rule(queue=st.sampled_from(QUEUES), offset=st.integers(0, 100))
    def commit(self, queue: tuple[str, int], offset: int) -> None:
        self.store.config.consumer_offsets.commit("group", *queue, offset)
        self.store.config.persist()
        self.offsets[queue] = offset

    # Retention

    @precondition(lambda self: len(self.disk.names("commitlog")) > 2)
    @rule()
    def retain(self) -> None:
        self.checkpoint()
        self.store.tick()
        self.checkpoint()
        self.clock.forward(EXPIRED)
        self.store.retention.clean()
        self.store.retention.check()
        if (job := self.store.retention.remove_next()) is not None:
            job.complete()
        self.removed = len(self.log) - len(walk(self.disk).records)

    # Stop and crash

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.durable = len(self.log)
        self.store = self._open()
        assert self.store.recovered.is_clean
        self._check_all()

    @rule()
    def kill(self) -> None:
        self.disk.abandon()
        self.store = self._open()
        self._check_all()

    @rule(seed=st.integers(0, 10_000))
    def cut_power(self, seed: int) -> None:
        dice = random.Random(seed)
        images = list(PowerCuts(self._pending()).images(dice, Limits(4, 1, 2)))
        self._start_on(dice.choice(images))
        there = len(walk(self.disk).records) + self.removed
        assert self.durable <= there <= len(self.log)
        del self.log[there:]
        self.durable = min(self.durable, there)
        self._check_all()

    def _pending(self) -> PendingDisk:
        for step in self.disk.trace:
            self.certain.apply(step)
        self.disk.trace.clear()
        return self.certain

    def _start_on(self, content: Snapshot) -> None:
        self.disk = RecordedDisk(content, self.clock)
        self.certain = PendingDisk(content)
        self.store = self._open()

    def _check_all(self) -> None:
        log = walk(self.disk)
        there = [
            Sent(found.record.topic, found.record.queue_id, found.record.body)
            for found in log.records
        ]
        assert there == self.log[self.removed :]
        check_queues(self.store, self.disk, log)
        check_index(self.store, self.disk, log)
        for queue, offset in self.offsets.items():
            # A power loss may take messages that the group has consumed already.
            self.offsets[queue] = kept = min(offset, self._queue_length(queue))
            assert self.store.config.consumer_offsets.query("group", *queue) == kept

    @invariant()
    def next_offsets_follow(self) -> None:
        if self.count:
            for queue in QUEUES:
                assert self.store.offsets.next(*queue) == self._queue_length(queue)


LiveStore.TestCase.settings = settings(
    max_examples=int(os.environ.get("STATEFUL_EXAMPLES", "40")),
    stateful_step_count=30,
    suppress_health_check=list(HealthCheck),
)
TestLiveStore = LiveStore.TestCase
