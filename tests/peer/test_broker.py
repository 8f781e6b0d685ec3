"""A RocketMQ broker goes on with delays, timers and transactions of mqlake's, and the reverse."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlake.broker.pop.check_points import CheckPoint, ack_message, point_message
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.record import Record
from mqlake.storage.clock import Clock, SystemClock
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutResult
from mqlake.store.delivery.transaction_messages import CHECK_TIMES, HALF_TOPIC
from mqlake.store.delivery.transactions import CheckBack, EndStatus
from mqlake.store.owned_store import OwnedStore
from mqlake.store.reader import StoreReader
from mqlake.store.settings import make_settings
from tests.peer.java_build import JavaMissingError
from tests.peer.rocketmq_broker import Broker

pytestmark = pytest.mark.peer

RETRY = "%RETRY%poppers_T"
WAIT = 90
"""Seconds until a broker must have done what it does every second."""

SIZES: dict[str, Any] = {
    "mappedFileSizeCommitLog": 1 << 20,
    "mappedFileSizeConsumeQueue": 20_000,
    "maxHashSlotNum": 1000,
    "maxIndexNum": 4000,
}
EVERY_SECOND = {
    "transactionTimeOut": 1000,
    "transactionCheckInterval": 1000,
    "transactionCheckMax": 1000,
}


class Ahead(SystemClock):
    """The clock of the machine, two hours ahead."""

    def milliseconds(self) -> int:
        return super().milliseconds() + 2 * 3600 * 1000


def open_store(path: Path, clock: Clock | None = None) -> OwnedStore:
    settings = make_settings(SIZES | EVERY_SECOND)
    return OwnedStore.open(LocalOwnedDirectory(path), settings, clock)


def send_at(store: OwnedStore, seconds: int, body: str, **properties: str) -> None:
    """Put a message that is to be delivered so many seconds from now."""
    pairs = {"UNIQ_KEY": body, "TIMER_DELAY_SEC": str(seconds), **properties}
    assert store.puts.put(Message("T", body.encode(), properties=pairs, queue_id=2)).is_ok


def keep_check_point(store: OwnedStore) -> None:
    """Keep that a message is out, and that the other one of its queue was acknowledged."""
    store.config.groups.put(SubscriptionGroup(group_name="poppers"))
    for body in (b"popped", b"acknowledged"):
        assert store.puts.put(Message("T", body, queue_id=1)).is_ok
    now = store.clock.milliseconds()
    point = CheckPoint(
        start_offset=0,
        pop_time=now,
        invisible_time=8000,
        count=2,
        queue_id=1,
        topic="T",
        group="poppers",
        distances=[0, 1],
        broker_name="peer",
    )
    revive_topic = "rmq_sys_REVIVE_LOG_DefaultCluster"
    assert store.puts.put(point_message(point, revive_topic, 3)).is_ok
    ack = ack_message(point.key, [1], "peer", point.revive_time, revive_topic, 3)
    assert store.puts.put(ack).is_ok


def deliver_timers(store: OwnedStore, body: bytes) -> None:
    """Let a store deliver until there is a message."""
    end = time.monotonic() + WAIT
    while body not in [record.body for record in store.reads.get("T", 2, 0, 100).records]:
        assert time.monotonic() < end, "the store does not deliver"
        store.timers.deliver()
        store.tick()
        time.sleep(0.05)


def records(path: Path, topic: str) -> list[Record]:
    with StoreReader.open(path) as reader:
        return [
            record
            for queue_id in reader.queues(topic)
            for record in reader.get(topic, queue_id, 0, max=1000).records
        ]


def run_broker(path: Path, directory: Path, until: Callable[[], bool]) -> None:
    """Let a broker work on a store until something has happened, then stop it."""
    directory.mkdir()
    try:
        broker = Broker(path, directory, SIZES | EVERY_SECOND)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    end = time.monotonic() + WAIT
    with broker:
        while not until():
            broker.check()
            assert time.monotonic() < end, "the broker does not go on"
            time.sleep(0.2)


@pytest.mark.nightly  # waits a minute
def test_delays_timers_and_transactions_move_both_ways(tmp_path: Path) -> None:
    path = tmp_path / "store"
    path.mkdir()
    store = open_store(path)
    store.config.topics.ensure("T", 4)
    for number in range(3):
        delayed = Message("T", b"delayed %d" % number, queue_id=number, delay_level=1)
        assert store.puts.put(delayed).is_ok
    send_at(store, 3600, "in an hour")
    send_at(store, 10, "soon")
    send_at(store, 1, "at once")
    send_at(store, 3600, "taken back")
    send_at(store, 3600, "0", TIMER_DEL_UNIQKEY="taken back")
    keep_check_point(store)
    store.tick()
    deliver_timers(store, b"at once")
    transactions = store.transactions
    names = ("committed", "rolled back", "open", "left")
    halves: dict[str, PutResult] = {
        name: transactions.prepare(Message("T", name.encode(), queue_id=3), "PG") for name in names
    }
    for name, commit in (("committed", True), ("rolled back", False)):
        at = halves[name]
        ended = transactions.end(at.physical_offset, at.queue_offset, "PG", commit=commit)
        assert ended.status is EndStatus.OK
    store.close()

    def asked() -> bool:
        times = [record.properties.get(CHECK_TIMES) for record in records(path, HALF_TOPIC)]
        is_delivered = len(records(path, "T")) >= 8 and records(path, RETRY)
        return bool(is_delivered) and "2" in times

    run_broker(path, tmp_path / "first", asked)
    bodies = [record.body for record in records(path, "T")]
    delayed = [b"delayed 0", b"delayed 1", b"delayed 2"]
    assert sorted(bodies) == [
        b"acknowledged",
        b"at once",
        b"committed",
        *delayed,
        b"popped",
        b"soon",
    ]
    assert [record.body for record in records(path, RETRY)] == [b"popped"]
    copies = {record.body for record in records(path, HALF_TOPIC)[len(names) :]}
    assert copies == {b"open", b"left"}, "those that ended are not asked for"

    store = open_store(path)
    questions: list[CheckBack] = []
    store.transactions.ask_with(questions.append)
    assert store.scheduled.deliver() == 0, "what was delivered there is not delivered here"
    store.transactions.check()
    assert {question.half.body for question in questions} == {b"open", b"left"}
    for question in questions:
        if question.half.body == b"open":
            half = question.half
            ended = store.transactions.end(
                half.physical_offset, half.queue_offset, "PG", commit=True, is_answer=True
            )
            assert ended.status is EndStatus.OK
    store.tick()
    store.close()
    count = len(records(path, HALF_TOPIC))

    def asked_again() -> bool:
        return len(records(path, HALF_TOPIC)) >= count + 2

    run_broker(path, tmp_path / "second", asked_again)
    assert {record.body for record in records(path, HALF_TOPIC)[count:]} == {b"left"}
    assert [record.body for record in records(path, "T")].count(b"open") == 1

    store = open_store(path, Ahead())
    deliver_timers(store, b"in an hour")
    assert store.timers.waiting == 0
    store.close()
    bodies = [record.body for record in records(path, "T")]
    assert sorted(bodies) == sorted({*bodies}), "nothing comes twice"
    assert {b"at once", b"soon", b"in an hour"} < {*bodies}
    assert b"taken back" not in bodies
