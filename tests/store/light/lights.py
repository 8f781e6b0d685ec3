"""Stores with light queues, and what must be in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from mqlake.formats.properties import MULTI_DISPATCH, MULTI_QUEUE_OFFSET
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.light.light_queues import LightQueues
from mqlake.store.owned_store import OwnedStore
from mqlake.store.settings import StoreSettings
from tests.crash.clock import ManualClock

SETTINGS = StoreSettings(
    enable_lmq=True,
    mapped_file_size_commit_log=1 << 14,
    mapped_file_size_consume_queue=2000,
    max_hash_slot_num=16,
    max_index_num=64,
)
TOPIC = "Parent"


def name(number: int, topic: str = TOPIC) -> str:
    return f"%LMQ%${topic}$session-{number}"


def open_store(path: Path, settings: StoreSettings = SETTINGS) -> OwnedStore:
    return OwnedStore.open(LocalOwnedDirectory(path), settings, ManualClock(1_800_000_000_000))


class LightMessages:
    """Puts messages with the offsets that they have in their light queues."""

    def __init__(self) -> None:
        self.next: Counter[str] = Counter()
        self.bodies: dict[str, list[bytes]] = {}

    def put(self, store: OwnedStore, body: bytes, names: Sequence[str], topic: str = TOPIC) -> None:
        properties = {
            MULTI_DISPATCH: ",".join(names),
            MULTI_QUEUE_OFFSET: ",".join(str(self.next[each]) for each in names),
        }
        assert store.puts.put(Message(topic, body, properties=properties)).is_ok
        for each in names:
            self.next[each] += 1
            self.bodies.setdefault(each, []).append(body)

    def require(self, store: OwnedStore, topic: str = TOPIC) -> None:
        """Check that a store has exactly these messages."""
        light = lights_of(store)
        for each, bodies in self.bodies.items():
            assert read(store, each, topic=topic, count=len(bodies) + 5) == bodies
        assert light.count(topic) == len(self.bodies)


def lights_of(store: OwnedStore) -> LightQueues:
    assert store.light is not None
    return store.light


def read(
    store: OwnedStore, queue: str, start: int = 0, count: int = 1000, topic: str = TOPIC
) -> list[bytes]:
    """Return the bodies of a light queue's messages."""
    store.tick()
    places = lights_of(store).places(topic, queue.encode(), start, count)
    bodies: list[bytes] = []
    for place in places:
        record = store.log.record(place.physical_offset)
        assert record is not None
        assert record.size == place.size
        bodies.append(record.body)
    return bodies


def light_files(path: Path) -> dict[str, bytes]:
    root = path / "lightqueue"
    files = sorted(file for file in root.rglob("*") if file.is_file())
    return {str(file.relative_to(root)): file.read_bytes() for file in files}
