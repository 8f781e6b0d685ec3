"""A live store, driven step by step: appends, dispatch, tables, deliveries, roles, stops, kills."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from mqlake.errors import DiskError, StoreError
from mqlake.formats.config.topics import BATCH_QUEUES, QUEUE_TYPE, Topic
from mqlake.formats.message_batch import encode_batch
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.put_result import PutResult
from mqlake.store.live_settings import LiveSettings
from mqlake.store.owned_store import OwnedStore
from mqlake.store.settings import StoreSettings
from tests.comparison.disk_world import FAILURES, DiskWorld
from tests.comparison.run import PerhapsError, Step, View, World
from tests.crash.store_workload import ASYNC, SYNC, settings_of

TOPIC, GROUP = "orders", "readers"
_NAMES = {TOPIC, GROUP, "others", "batches", "later"}
"""Of topics and groups that workloads create; a broker creates more."""
Script = Callable[["StoreSubject"], Iterator[Step]]


def look_at(store: OwnedStore, keys: Sequence[str], *, is_exact: bool = True) -> View:
    """Return what users of a store see: each queue, keys, tables.

    Args:
        is_exact: whether it matters how often a message is there, and where.
    """
    store.tick()
    reads, config = store.reads, store.config
    seen: dict[str, object] = {
        "topics": tuple(topic for topic in config.topics if topic in _NAMES),
        "groups": tuple(group for group in config.groups if group in _NAMES),
        "end": store.log.end if is_exact else 0,
    }
    for topic, queue_id in store.queues.queues():
        if not is_exact and topic.lower().startswith(("rmq_sys_", "schedule_topic_")):
            continue  # What waits there, and for how long.
        low, high = reads.queue(topic, queue_id)
        at, bodies = low, []
        while at < high:
            result = reads.get(topic, queue_id, at, 100, max_bytes=1 << 20)
            bodies += [_name(record.body) for record in result.records]
            if result.next_offset <= at:
                break
            at = result.next_offset
        name = f"{topic}/{queue_id}"
        if not is_exact:
            seen[name] = tuple(sorted({*bodies}))
            continue
        seen |= {f"{name} from": low, f"{name} to": high, name: tuple(bodies)}
        for group in config.consumer_offsets.groups_of(topic):
            offset = config.consumer_offsets.query(group, topic, queue_id)
            seen[f"{group} in {name}"] = offset
    for key in keys:
        if found := reads.by_key(TOPIC, key).records:
            seen[f"key {key}"] = tuple(sorted(_name(record.body) for record in found))
    return seen


def _name(body: bytes) -> str:
    return body.rstrip(b"x").hex() if b"\0" in body else body.decode().rstrip("x")


class StoreSubject:
    """A store and who uses it."""

    def __init__(self, world: DiskWorld, workload: StoreWorkload) -> None:
        self.world, self._workload = world, workload
        self.settings = LiveSettings(workload.settings)
        self._store: OwnedStore | None = None
        self.keys: list[str] = []
        self._bodies = 0
        self._waits_for_sync = False

    @property
    def store(self) -> OwnedStore:
        """The store; it is opened if it is not open."""
        if self._store is None:
            self._store = OwnedStore.open(self.world.disk, self.settings, self.world.clock)
        return self._store

    def steps(self) -> Iterator[Step]:
        yield Step("start", lambda: self.store)
        yield from self._workload.script(self)
        yield Step("settle", lambda: self._pass_time(61_000, rounds=4))
        yield Step("stop", self._stop)
        yield Step("start again", lambda: self.store)

    def look(self) -> View | None:
        return None if self._store is None else self._look_at(self._store)

    def _look_at(self, store: OwnedStore) -> View:
        return look_at(store, self.keys, is_exact=self._workload.is_exact)

    def left(self) -> View:
        store = OwnedStore.open(self.world.left(), self.settings.now, self.world.clock)
        try:
            return self._look_at(store)
        finally:
            store.abandon()

    def revive(self) -> None:
        self._store, self._waits_for_sync = None, False
        assert self.store.health.failure is None

    def close(self) -> None:
        self._store = None

    # Steps

    def message(self, size: int = 20, **fields: object) -> Message:
        """Return a message unlike all others."""
        self._bodies += 1
        body = f"{self._bodies}:".encode().ljust(size, b"x")
        key = f"k{self._bodies}"
        if self._bodies % 3 == 0:
            self.keys.append(key)
        return Message(**{"topic": TOPIC, "keys": f"{key} all", **fields, "body": body})

    def put(self, size: int = 20, **fields: object) -> Step:
        message = self.message(size, **fields)
        return self._puts(lambda: self.store.puts.put(message))

    def _puts(self, put: Callable[[], PutResult]) -> Step:
        def act() -> None:
            # What is stored needs another sync, if the disk was not even asked for the first one.
            self._acknowledge([] if self._waits_for_sync else [put()])

        return Step(f"put {self._bodies}", act, is_atomic=True)

    def put_many(self, count: int) -> Step:
        messages = [self.message(queue_id=number % 2) for number in range(count)]
        # Each message of a call is refused for itself; a user sends those again.
        left = list(messages)

        def act() -> None:
            results = self.store.puts.put_many(left)
            left[:] = [
                message for message, result in zip(left, results, strict=True) if not result.is_ok
            ]
            self._acknowledge(results)

        return Step(f"put many {self._bodies}", act)

    def put_batch(self, count: int, topic: str = TOPIC, *, is_inner: bool = False) -> Step:
        messages = [self.message(300) for _ in range(count)]
        body = encode_batch((0, message.body, b"") for message in messages)
        batch = MessageBatch(topic, body, is_inner=is_inner)
        return self._puts(lambda: self.store.puts.put_batch(batch))

    def _acknowledge(self, results: Sequence[PutResult]) -> None:
        for result in results:
            if not result.is_ok:
                raise StoreError(result.reason)
        if not self.store.watermarks.confirms_at_append:
            self._waits_for_sync = True
            try:
                self.store.durability.sync_log()
            except DiskError as error:
                raise PerhapsError(str(error)) from error
            self._waits_for_sync = False

    def do(self, name: str, act: Callable[[], object], **rules: bool) -> Step:
        return Step(name, act, **rules)

    def checkpoint(self) -> Step:
        return Step("checkpoint", lambda: self.store.durability.checkpoint())  # noqa: PLW0108

    def make_topic(self, topic: Topic) -> Step:
        def act() -> None:
            self.store.config.topics.put(topic)
            self.store.config.persist()

        return Step(f"create {topic.topic_name}", act)

    def remove_topic(self, topic: str) -> Step:
        return Step(f"delete {topic}", lambda: self.store.removal.remove(topic))

    def consume(self, offset: int) -> Step:
        def act() -> None:
            self.store.config.consumer_offsets.commit(GROUP, TOPIC, 0, offset)
            self.store.config.persist()

        return Step(f"commit {offset}", act)

    def pass_time(self, milliseconds: int) -> Step:
        return Step("time passes", lambda: self._pass_time(milliseconds), is_exact=False)

    def _pass_time(self, milliseconds: int, rounds: int = 1) -> None:
        from tests.store.small_stores import run_services

        for _ in range(rounds):
            self.world.clock.forward(milliseconds)
            run_services(self.store)
            self.store.tick()
        if self.store.health.failure is not None:
            raise self.store.health.failure

    def restart(self) -> Step:
        def act() -> None:
            self._stop()
            _ = self.store

        return Step("restart", act)

    def _stop(self) -> None:
        store, self._store = self.store, None
        store.close()

    def kill(self) -> Step:
        def act() -> None:
            if self._store is not None:
                self._store = None
                self.world.disk.abandon()
            _ = self.store

        return Step("kill", act)


@dataclass
class StoreWorkload:
    """A script for a store."""

    name: str
    script: Script
    settings: StoreSettings = field(default_factory=lambda: settings_of(ASYNC))
    failures: Sequence[str] = FAILURES
    is_exact: bool = True
    """As for `look_at`: a kill repeats deliveries."""

    def begin(self, failure: str, at: int) -> tuple[World, StoreSubject]:
        world = DiskWorld(failure, at)
        return world, StoreSubject(world, self)


def _puts(s: StoreSubject) -> Iterator[Step]:
    for number in range(6):
        yield s.put(900, queue_id=number % 2)
    yield s.put_batch(3)
    yield s.put_many(5)
    yield s.checkpoint()
    yield s.put(3000)
    yield s.put()


def _starts(s: StoreSubject) -> Iterator[Step]:
    for _ in range(3):
        for number in range(5):
            yield s.put(600, queue_id=number % 2)
        yield s.restart()
        yield s.put()
        yield s.kill()
        yield s.put(900)
        yield s.checkpoint()
        yield s.kill()


def _topics(s: StoreSubject) -> Iterator[Step]:
    yield s.make_topic(Topic(TOPIC, read_queue_nums=2, write_queue_nums=2))
    yield s.put()
    yield s.put(queue_id=1)
    yield s.consume(1)
    yield s.make_topic(Topic("others"))
    yield s.put(topic="others", keys="")
    yield s.put()
    yield s.consume(2)
    yield s.remove_topic("others")
    yield s.put(topic="others", keys="")
    yield s.kill()
    yield s.put(topic="others", keys="")
    yield s.restart()


def _batches(s: StoreSubject) -> Iterator[Step]:
    yield s.make_topic(Topic("batches", attributes={QUEUE_TYPE: BATCH_QUEUES}))
    for _ in range(4):
        yield s.put_batch(3, "batches", is_inner=True)
    yield s.restart()
    yield s.put_batch(2, "batches", is_inner=True)
    yield s.kill()
    yield s.put_batch(1, "batches", is_inner=True)


def _retention(s: StoreSubject) -> Iterator[Step]:
    for _ in range(6):
        yield s.put(1800)
    yield s.checkpoint()

    def expire() -> None:
        s.store.retention.clean()
        s.store.retention.check()
        for _ in range(9):
            if (job := s.store.retention.remove_next()) is not None:
                job.complete()
        s.store.tick()

    yield s.do("time passes", lambda: s.world.clock.forward(73 * 3_600_000))
    yield s.do("expire", expire, is_exact=False)
    yield s.do("expire again", expire)
    yield s.put()
    yield s.restart()
    yield s.put()


def _deliveries(s: StoreSubject) -> Iterator[Step]:
    yield s.put(topic="later", delay_level=1)
    yield s.put(topic="later", queue_id=1, properties={"TIMER_DELAY_SEC": "2"})
    yield s.pass_time(1_100)
    yield s.pass_time(2_100)
    yield s.do("settled", lambda: s._pass_time(31_000, rounds=4))
    yield s.put(topic="later", delay_level=2)
    yield s.kill()
    yield s.put(topic="later", queue_id=1, properties={"TIMER_DELAY_SEC": "9"})
    yield s.restart()


STORE_WORKLOADS = [
    StoreWorkload("store-puts", _puts),
    StoreWorkload("store-puts-synced", _puts, settings_of(SYNC)),
    StoreWorkload("store-starts", _starts),
    StoreWorkload("store-starts-synced", _starts, settings_of(SYNC)),
    StoreWorkload("store-topics", _topics),
    StoreWorkload("store-topics-synced", _topics, settings_of(SYNC)),
    StoreWorkload("store-batches", _batches),
    StoreWorkload("store-batches-synced", _batches, settings_of(SYNC)),
    StoreWorkload("store-retention", _retention),
    StoreWorkload("store-retention-synced", _retention, settings_of(SYNC)),
    StoreWorkload("store-deliveries", _deliveries, is_exact=False),
]
