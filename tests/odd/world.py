"""A live store that is given odd messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import msgspec

from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutResult
from mqlake.store.delivery.transactions import CheckBack
from mqlake.store.owned_store import OwnedStore
from mqlake.store.settings import StoreSettings
from tests.crash.clock import ManualClock
from tests.odd.sent import Sent
from tests.odd_messages import odd_message, odd_topic

SETTINGS = StoreSettings(
    mapped_file_size_commit_log=1 << 20,
    mapped_file_size_consume_queue=200,
    max_hash_slot_num=1000,
    max_index_num=20_000,
    mapped_file_size_timer_log=1 << 16,
    max_message_size=1 << 17,
)

SECOND = 1000

GROUP = "producers"

REFUSED = "MESSAGE_ILLEGAL", "PROPERTIES_SIZE_EXCEEDED", "WHEEL_TIMER_MSG_ILLEGAL"


class World:
    """A live store with a clock that is moved by hand, and what it has accepted."""

    def __init__(self, path: Path) -> None:
        self.path, self.clock = path, ManualClock(1_800_000_000_000)
        self.store = self.open(path)
        self.accepted: dict[int, Sent] = {}
        self.refused: dict[int, tuple[Message, PutResult]] = {}
        self.asked: list[CheckBack] = []
        self.store.transactions.ask_with(self.asked.append)

    def open(self, path: Path) -> OwnedStore:
        return OwnedStore.open(LocalOwnedDirectory.make(path), SETTINGS, self.clock)

    def note(self, message: Message, result: PutResult) -> None:
        """Note what the store answered to a message."""
        if result.is_ok:
            self.accepted[message.queue_id] = Sent.of(message)
        else:
            assert result.status in REFUSED, result
            assert result.reason.strip(), result
            assert "\n" not in result.reason
            assert result.physical_offset == -1
            self.refused[message.queue_id] = (message, result)

    def attempt(self, message: Message, put: Callable[[Message], PutResult]) -> PutResult:
        """Put a message by itself; what is refused appends nothing."""
        end, offsets = self.store.log.end, dict(self.store.offsets)
        result = put(message)
        if not result.is_ok:
            assert (self.store.log.end, dict(self.store.offsets)) == (end, offsets)
        self.note(message, result)
        return result

    def pass_time(self, seconds: int) -> None:
        """Let time pass, and the store do what falls due."""
        for _ in range(seconds):
            self.clock.forward(SECOND)
            self.store.tick()
            while (job := self.store.services.due()) is not None:
                job.run()
                job.done()
        self.store.tick()

    def check(self, store: OwnedStore, stage: str) -> None:
        """Check each message's queue."""
        store.tick()
        for number, sent in self.accepted.items():
            topic = sent.message.topic
            queue = store.queues.queue(topic, number)
            assert queue.end == 1, (stage, queue.end, f"{sent!r:.400}")
            entry = queue.entry(0)
            assert entry is not None, stage
            sent.check(bytes(store.log.read(entry.physical_offset, entry.size)), stage)
        for number, (message, _) in self.refused.items():
            assert store.offsets.next(message.topic, number) == 0, stage


def put(world: World, messages: Sequence[Message], dice: Random) -> None:
    for message in messages:
        world.attempt(message, world.store.puts.put)


def drawn(dice: Random, count: int, *, of_clients: bool = False) -> list[Message]:
    """Return messages, each of a queue of its own."""
    topics = [odd_topic(dice, of_clients=of_clients) for _ in range(6)]
    return [
        msgspec.structs.replace(
            odd_message(dice, dice.choice(topics), of_system=dice.random() < 0.2),
            queue_id=number,
            prepared_transaction_offset=0,
        )
        for number in range(count)
    ]
