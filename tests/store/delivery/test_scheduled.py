"""Delayed messages: put aside as RocketMQ does it, delivered when due, once at least."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mqlake.formats.consume_queue import DEFAULT_DELAY_LEVELS, SCHEDULE_TOPIC
from mqlake.formats.properties import decode_properties, encode_properties
from mqlake.formats.record import Record
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutResult, PutStatus
from mqlake.store.delivery.redelivery import Redelivery
from mqlake.store.delivery.schedule import Schedule, may_be_delayed
from mqlake.store.delivery.scheduled import ScheduledMessages
from mqlake.store.delivery.transaction_messages import HALF_TOPIC
from mqlake.store.live_settings import current
from mqlake.store.owned_store import OwnedStore
from mqlake.store.reader import StoreReader
from mqlake.store.services import Services
from mqlake.store.settings import FlushDiskType, StoreSettings
from tests.crash.clock import ManualClock
from tests.golden import store
from tests.store.live_parts import NOW, LiveParts
from tests.store.record_crcs import without_crc

SECOND = 1000


class Delayed(LiveParts):
    """A store that puts delayed messages aside and delivers them."""

    def __init__(self, path: Path, clock: ManualClock | None = None) -> None:
        self.time = clock or ManualClock(NOW)
        super().__init__(path, clock=self.time)
        self.schedule = Schedule(current(self.settings))
        self.refusals: list[PutResult] = []
        self.scheduled = ScheduledMessages(
            self.log,
            self.queues,
            self.config.delay_offsets,
            Redelivery(self.put_as_is, self.put_as_is, self.config),
            self.settings,
            self.time,
        )

    def put_as_is(self, message: Message) -> PutResult:
        return self.refusals.pop(0) if self.refusals else self.appender.put(message)

    def send(self, body: str, level: int, topic: str = "T", queue_id: int = 0) -> None:
        message = Message(topic=topic, body=body.encode(), queue_id=queue_id, delay_level=level)
        assert self.put(self.schedule.apply(message)).is_ok

    def deliver(self, most: int = 1000) -> int:
        count = self.scheduled.deliver(most)
        self.tick()
        return count

    def bodies(self, topic: str = "T", queue_id: int = 0) -> list[str]:
        return [record.body.decode() for record in self.records(topic, queue_id)]


@pytest.fixture
def live(tmp_path: Path) -> Delayed:
    return Delayed(tmp_path)


SCHEDULE = Schedule(current(StoreSettings()))


def golden_records(topic: str) -> list[Record]:
    """Return the first messages of each queue of a topic, as RocketMQ 5.5 wrote them."""
    with StoreReader.open(store("rmq5-clean").path) as reader:
        return [
            record
            for queue_id in reader.queues(topic)
            for record in reader.get(topic, queue_id, reader.queue(topic, queue_id)[0], 50).records
        ]


def test_the_put_side_is_rocketmqs() -> None:
    """What the hook makes of a message equals what RocketMQ 5.5 has in its log."""
    scheduled = golden_records(SCHEDULE_TOPIC)
    assert len(scheduled) > 50
    for record in scheduled:
        sent = {k: v for k, v in record.properties.items() if not k.startswith("REAL_")}
        message = Message(
            topic=record.properties["REAL_TOPIC"],
            body=record.body,
            queue_id=int(record.properties["REAL_QID"]),
            encoded_properties=encode_properties(sent),
        )
        made = SCHEDULE.apply(message)
        assert (made.topic, made.queue_id, made.body) == (
            SCHEDULE_TOPIC,
            record.queue_id,
            record.body,
        )
        assert decode_properties(made.encoded_properties or b"") == record.properties


def test_what_is_delivered_is_rocketmqs() -> None:
    """Delivered records of RocketMQ 5.5 have the scheduled one's properties, every one of them."""
    delivered = {r.unique_key: r for r in golden_records("TopicDelay")}
    compared = 0
    for record in golden_records(SCHEDULE_TOPIC):
        if (found := delivered.get(record.unique_key)) is not None:
            compared += 1
            assert found.properties == record.properties
            assert (found.sys_flag, found.body) == (record.sys_flag, record.body)
    assert compared > 20


@pytest.mark.parametrize(
    "message",
    [
        Message(topic="T", body=b""),
        Message(topic="T", body=b"", delay_level=-1),
        Message(topic="T", body=b"", properties={"DELAY": "soon"}),
        Message(topic="T", body=b"", encoded_properties=b"DELAY\x010\x02"),
        Message(topic="T", body=b"", encoded_properties=b"NODELAY\x013\x02"),
        Message(topic="T", body=b"", delay_level=3, sys_flag=4),
        Message(topic="T", body=b"", delay_level=3, queue_id=-1),
        Message(topic="../T", body=b"", delay_level=3),
        Message(topic="t" * 256, body=b"", delay_level=3),
        Message(topic="T", body=b"", delay_level=3, tags="\x02"),
    ],
)
def test_messages_without_a_delay_or_that_are_invalid_stay_as_they_are(message: Message) -> None:
    assert SCHEDULE.apply(message) is message


@pytest.mark.parametrize(
    "message",
    [
        Message(topic="T", body=b"", delay_level=99, queue_id=3, tags="a", keys=["k", "l"]),
        Message(
            topic="T", body=b"", properties={"DELAY": "18", "TIMER_DELAY_SEC": "9"}, queue_id=3
        ),
        Message(topic="T", body=b"", encoded_properties=b"DELAY\x0120\x02", queue_id=3, sys_flag=8),
    ],
)
def test_delayed_messages_are_put_into_the_schedule_topic(message: Message) -> None:
    assert may_be_delayed(message)
    made = SCHEDULE.apply(message)
    assert (made.topic, made.queue_id) == (SCHEDULE_TOPIC, 17)
    pairs = decode_properties(made.encoded_properties or b"")
    assert (pairs["DELAY"], pairs["REAL_TOPIC"], pairs["REAL_QID"]) == ("18", "T", "3")
    assert "TIMER_DELAY_SEC" not in pairs
    assert pairs.get("KEYS") in (None, "k l")


def test_each_level_is_delivered_when_due_and_not_before(live: Delayed) -> None:
    for level in range(1, 19):
        live.send(str(level), level, queue_id=level % 2)
    assert live.scheduled.next_due() == NOW + DEFAULT_DELAY_LEVELS[0]
    passed = 0
    for level, delay in enumerate(DEFAULT_DELAY_LEVELS, 1):
        live.time.forward(delay - passed - 1)
        assert live.deliver() == 0
        live.time.forward(1)
        assert live.scheduled.next_due() == NOW + delay
        assert live.deliver() == 1
        assert live.bodies(queue_id=level % 2)[-1] == str(level)
        passed = delay
    assert live.scheduled.next_due() is None
    assert live.deliver() == 0


def test_a_delivered_message_keeps_what_it_was_sent_with(live: Delayed) -> None:
    message = Message(
        topic="T",
        body=b"b",
        tags="tag",
        keys="k",
        queue_id=2,
        flag=7,
        sys_flag=1,
        born_timestamp=123,
        born_host="10.0.0.1:99",
        reconsume_times=3,
        delay_level=1,
    )
    live.put(live.schedule.apply(message))
    live.time.forward(SECOND)
    assert live.deliver() == 1
    (record,) = live.records("T", 2)
    (aside,) = live.records(SCHEDULE_TOPIC, 0)
    assert without_crc(record.properties) == without_crc(aside.properties)
    assert (record.tags, record.keys, record.flag, record.sys_flag) == ("tag", ["k"], 7, 1)
    assert (record.born_timestamp, record.born_host) == (123, "10.0.0.1:99")
    assert (record.reconsume_times, record.store_timestamp) == (3, NOW + SECOND)


def test_work_of_a_call_is_bounded(live: Delayed) -> None:
    for number in range(10):
        live.send(str(number), 1)
    live.time.forward(SECOND)
    assert [live.deliver(4) for _ in range(4)] == [4, 4, 2, 0]
    assert live.bodies() == [str(number) for number in range(10)]


def test_no_level_waits_for_another(live: Delayed) -> None:
    for number in range(10):
        live.send(str(number), 1)
    live.send("other", 2, topic="U")
    live.time.forward(5 * SECOND)
    live.deliver(3)
    live.deliver(3)
    assert live.bodies("U") == ["other"]


def test_offsets_advance_only_with_what_is_on_the_disk(live: Delayed) -> None:
    live.send("a", 1)
    live.send("b", 1)
    live.time.forward(SECOND)
    live.deliver(1)
    live.log.unsynced().complete()
    live.deliver(1)
    assert live.config.delay_offsets.get(1) == 1
    live.scheduled.keep()
    assert live.config.delay_offsets.get(1) == 1
    live.log.unsynced().complete()
    live.scheduled.keep()
    assert live.config.delay_offsets.get(1) == 2


def test_a_restart_goes_on_from_the_file(live: Delayed, tmp_path: Path) -> None:
    for name in "abcd":
        live.send(name, 1)
    live.time.forward(SECOND)
    live.deliver(2)
    live.log.unsynced().complete()
    live.scheduled.keep()
    live.config.persist()
    again = Delayed(tmp_path, live.time)
    assert again.deliver() == 2
    assert again.bodies() == list("abcd")


def test_a_crash_delivers_again_rather_than_not(live: Delayed, tmp_path: Path) -> None:
    for name in "abcd":
        live.send(name, 1)
    live.time.forward(SECOND)
    live.deliver(1)
    live.log.unsynced().complete()
    live.scheduled.keep()
    live.config.persist()
    live.deliver(2)
    again = Delayed(tmp_path, live.time)
    again.deliver()
    assert again.bodies() == list("abcbcd")


@pytest.mark.parametrize("status", [PutStatus.SERVICE_NOT_AVAILABLE, PutStatus.OS_PAGE_CACHE_BUSY])
def test_a_message_that_is_not_taken_is_tried_again(live: Delayed, status: PutStatus) -> None:
    for name in "ab":
        live.send(name, 1)
    live.time.forward(SECOND)
    live.refusals = [PutResult(status, reason="busy")]
    assert live.deliver() == 0
    assert live.deliver() == 2
    assert live.bodies() == ["a", "b"]


def test_what_can_never_be_delivered_does_not_stop_the_rest(live: Delayed) -> None:
    def aside(properties: bytes) -> None:
        live.put(
            Message(topic=SCHEDULE_TOPIC, body=b"x", queue_id=0, encoded_properties=properties)
        )

    aside(b"DELAY\x011\x02")
    aside(b"DELAY\x011\x02REAL_TOPIC\x01T\x02REAL_QID\x01x\x02")
    aside(b"DELAY\x011\x02REAL_TOPIC\x01../T\x02REAL_QID\x010\x02")
    aside(f"DELAY\x011\x02REAL_TOPIC\x01{HALF_TOPIC}\x02REAL_QID\x010\x02".encode())
    live.send("good", 1)
    live.time.forward(SECOND)
    assert live.deliver() == 1
    assert live.scheduled.dropped == 4
    assert live.bodies() == ["good"]
    assert live.records(HALF_TOPIC) == []


def test_a_clock_that_went_back_delivers_at_once(live: Delayed) -> None:
    """RocketMQ: `correctDeliverTimestamp`: no message waits longer than its level."""
    live.send("a", 1)
    earlier = ManualClock(NOW - 60_000)
    scheduled = ScheduledMessages(
        live.log,
        live.queues,
        live.config.delay_offsets,
        Redelivery(live.put_as_is, live.put_as_is, live.config),
        live.settings,
        earlier,
    )
    assert scheduled.next_due() == NOW - 60_000
    assert scheduled.deliver() == 1


def test_offsets_outside_of_the_queue_are_corrected(live: Delayed, tmp_path: Path) -> None:
    live.send("a", 1)
    live.config.delay_offsets.set(1, 50)
    live.config.persist()
    again = Delayed(tmp_path, live.time)
    again.send("b", 1)
    again.time.forward(SECOND)
    assert again.deliver() == 1
    assert again.bodies() == ["b"]


def test_what_retention_removed_is_counted(tmp_path: Path) -> None:
    live = Delayed(tmp_path)
    for number in range(12):
        live.send(str(number) + "." * 100_000, 1)
    live.log.unsynced().complete()
    assert live.log.remove_first() is not None
    live.queues.trim(live.log.min_offset)
    live.time.forward(SECOND)
    left = live.queues.min_offset(SCHEDULE_TOPIC, 0)
    assert 0 < left < 12
    assert live.deliver() == 12 - left
    assert live.scheduled.dropped == left


def test_delivery_runs_at_its_interval(live: Delayed) -> None:
    services = Services(live.time, live.scheduled.services())
    live.send("a", 1)
    for _ in range(9):
        live.time.forward(100)
        services.due()
    live.tick()
    assert live.bodies() == []
    live.time.forward(100)
    services.due()
    live.tick()
    assert live.bodies() == ["a"]


@pytest.mark.parametrize("flush", FlushDiskType)
def test_a_store_does_it_all_by_the_clock(tmp_path: Path, flush: FlushDiskType) -> None:
    clock = ManualClock(NOW)
    chosen = StoreSettings(
        mapped_file_size_commit_log=1 << 20,
        max_hash_slot_num=100,
        max_index_num=400,
        flush_disk_type=flush,
    )
    whole = OwnedStore.open(LocalOwnedDirectory(tmp_path), chosen, clock)

    def wait(milliseconds: int) -> None:
        for _ in range(milliseconds // 50):
            clock.forward(50)
            while (job := whole.services.due()) is not None:
                job.run()
                job.done()
            whole.tick()

    assert whole.puts.put_many([Message("T", b"a", delay_level=1), Message("T", b"b")])[0].is_ok
    wait(900)
    assert whole.queues.max_offset("T", 0) == 1
    wait(1000)
    assert whole.queues.max_offset("T", 0) == 2
    wait(20_000)
    assert whole.config.delay_offsets.get(1) == 1
    assert (tmp_path / "config" / "delayOffset.json").exists()
    whole.close()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_everything_comes_once_in_order_and_in_time(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    clock = ManualClock(NOW)
    live = Delayed(tmp_path_factory.mktemp("store"), clock)
    sent: list[tuple[int, int, str]] = []
    steps = data.draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 7000)), max_size=30))
    for number, (level, wait) in enumerate(steps):
        if level:
            live.send(f"{level}:{number}", level)
            sent.append((level, clock.milliseconds(), f"{level}:{number}"))
        clock.forward(wait)
        live.deliver(data.draw(st.integers(1, 3)))
    clock.forward(60_000)
    while live.deliver():
        pass
    due = {body: time + DEFAULT_DELAY_LEVELS[level - 1] for level, time, body in sent}
    assert sorted(live.bodies()) == sorted(due)
    assert all(record.store_timestamp >= due[record.body.decode()] for record in live.records("T"))
    for level in range(1, 5):
        bodies = [body for body in live.bodies() if body.startswith(f"{level}:")]
        assert bodies == [body for found, _, body in sent if found == level]


LEVELS = (1, 2, 3, 5, 8, 13, 21)


def with_levels(text: str) -> StoreSettings:
    return StoreSettings(
        mapped_file_size_commit_log=1 << 20,
        max_hash_slot_num=100,
        max_index_num=400,
        message_delay_level=text,
    )


@settings(deadline=None, max_examples=10)
@given(
    sent=st.lists(st.integers(1, len(LEVELS)), min_size=1, max_size=12),
    kept=st.integers(1, len(LEVELS)),
    waited=st.integers(0, 15),
    set_back=st.sampled_from([0, 0, 1000]),
)
def test_messages_of_dropped_levels_are_delivered_at_their_time(
    tmp_path_factory: pytest.TempPathFactory,
    sent: list[int],
    kept: int,
    waited: int,
    set_back: int,
) -> None:
    def levels(count: int) -> StoreSettings:
        return with_levels(" ".join(f"{seconds}s" for seconds in LEVELS[:count]))

    path, clock = tmp_path_factory.mktemp("store"), ManualClock(NOW)
    with closing(
        OwnedStore.open(LocalOwnedDirectory.make(path), levels(len(LEVELS)), clock)
    ) as store:
        for number, level in enumerate(sent):
            assert store.puts.put(Message("T", b"%d" % number, delay_level=level)).is_ok
        store.tick()
        clock.forward(waited * SECOND)
        store.scheduled.deliver()
        store.tick()
    clock = ManualClock(clock.milliseconds() - set_back * SECOND)
    with closing(OwnedStore.open(LocalOwnedDirectory.make(path), levels(kept), clock)) as store:
        seen: dict[bytes, int] = {}
        for second in range(waited, LEVELS[-1] + 2):
            store.scheduled.deliver()
            store.tick()
            for record in store.reads.get("T", 0, 0, 1000).records:
                seen.setdefault(record.body, second)
            clock.forward(SECOND)
    assert len(seen) == len(sent)
    for number, level in enumerate(sent):
        due = LEVELS[level - 1]
        at = seen[b"%d" % number]
        # A clock that was set back delivers at once what it cannot explain.
        assert at == max(due, waited) or (set_back and at >= waited)


def test_messages_of_dropped_levels_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock(NOW)
    with closing(
        OwnedStore.open(LocalOwnedDirectory.make(tmp_path), with_levels("1s 5s 9s"), clock)
    ) as store:
        for level in (1, 2, 3, 3):
            store.puts.put(Message("T", b"", delay_level=level))
        store.tick()
    with closing(OwnedStore.open(LocalOwnedDirectory.make(tmp_path), with_levels("1s"), clock)):
        pass
    assert [text for text in caplog.messages if "wait" in text] == [
        f"messageDelayLevel ends with level 1; messages of level {level} that wait, and are "
        f"delivered at the time that they were given: {count}"
        for level, count in ((2, 1), (3, 2))
    ]
