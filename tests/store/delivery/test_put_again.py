"""What a store accepted it can put again: at every limit of sizes, with any bytes, past poison."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.formats.properties import MAX_LENGTH, decode_properties
from mqlake.formats.record import Record
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutResult, PutStatus
from mqlake.store.delivery.timer_messages import TIMER_TOPIC
from mqlake.store.delivery.transaction_messages import (
    DISCARDED_TOPIC,
    GROUP,
    HALF_TOPIC,
    OP_TOPIC,
)
from mqlake.store.delivery.transactions import CheckBack, EndStatus
from mqlake.store.owned_store import OwnedStore
from mqlake.store.settings import StoreSettings
from tests.crash.clock import ManualClock
from tests.store.live_parts import NOW

SECOND = 1000
ASIDE = "rmq_sys_UNDELIVERABLE"
SMALL = StoreSettings(
    mapped_file_size_commit_log=1 << 20,
    mapped_file_size_consume_queue=2000,
    max_hash_slot_num=100,
    max_index_num=400,
    timer_roll_window_slot=30,
    transaction_check_max=3,
)
KINDS = ("timer", "delay", "half", "half that is checked", "half that waits", "half with a timer")
"""Ways of a message through the topics of the store; "half that waits" has an immunity."""


class Again:
    """A store with a clock that is moved by hand; producers are asked, and commit."""

    def __init__(self, path: Path, settings: StoreSettings = SMALL) -> None:
        self.path, self.settings, self.clock = path, settings, ManualClock(NOW)
        self.asked: list[CheckBack] = []
        self.store = self._open()

    def _open(self) -> OwnedStore:
        directory = LocalOwnedDirectory.make(self.path)
        store = OwnedStore.open(directory, self.settings, self.clock)
        store.transactions.ask_with(self.asked.append)
        return store

    def reopen(self, **changes: object) -> None:
        self.store.close()
        self.settings = msgspec.structs.replace(self.settings, **changes)
        self.store = self._open()

    def send(
        self, kind: str, data: bytes, body: bytes = b"body", topic: str = "T", queue_id: int = 2
    ) -> PutResult:
        """Put a message on one of its ways, with these encoded properties besides."""
        extra = {
            "timer": "TIMER_DELAY_SEC\x0190\x02",
            "delay": "DELAY\x011\x02",
            "half that waits": "CHECK_IMMUNITY_TIME_IN_SECONDS\x0110\x02",
            "half with a timer": "TIMER_DELAY_SEC\x0190\x02",
        }.get(kind, "")
        message = Message(topic, body, queue_id=queue_id, encoded_properties=extra.encode() + data)
        if kind.startswith("half"):
            result = self.store.transactions.prepare(message, "producers")
        else:
            result = self.store.puts.put(message)
        self.store.tick()
        return result

    def forge(self, topic: str, data: bytes, body: bytes = b"forged", queue_id: int = 0) -> None:
        """Put a message to a topic as it is."""
        message = Message(topic, body, queue_id=queue_id, encoded_properties=data)
        result = self.store.redelivery.put(message)
        assert result.is_ok, result
        self.store.tick()

    def settle(self, kind: str, put: PutResult) -> None:
        """Do what makes a message reach its consumers."""
        if kind == "half":
            self._commit(put)
        elif kind.startswith("half"):
            self.pass_time(60)
            answers = {question.half.body: question for question in self.asked}
            self.asked.clear()
            for question in answers.values():
                half = question.half
                ended = self.store.transactions.end(
                    half.physical_offset, half.queue_offset, question.group, commit=True
                )
                if half.body == b"forged":
                    continue
                assert ended.status in (EndStatus.OK, EndStatus.TOO_LATE)
                if ended.status is EndStatus.TOO_LATE:
                    self._commit(half, is_answer=True)
        self.pass_time(200)

    def _commit(self, half: PutResult | Record, *, is_answer: bool = False) -> None:
        ended = self.store.transactions.end(
            half.physical_offset,
            half.queue_offset,
            "producers",
            commit=True,
            is_answer=is_answer,
        )
        assert ended.status is EndStatus.OK
        self.store.tick()

    def pass_time(self, seconds: int) -> None:
        """Let time pass, a second a step."""
        for _ in range(seconds):
            self.clock.forward(SECOND)
            while (job := self.store.services.due()) is not None:
                job.run()
                job.done()
            self.store.tick()

    def records(self, topic: str = "T", queue_id: int = 2) -> list[Record]:
        return list(self.store.reads.get(topic, queue_id, 0, 1000, max_bytes=1 << 24).records)


@pytest.fixture
def again(tmp_path: Path) -> Again:
    return Again(tmp_path)


def pairs_of(filler: bytes, size: int) -> bytes:
    """Return a user's property of so many bytes in all."""
    head = b"user\x01"
    return head + (filler * size)[: size - len(head) - 1] + b"\x02"


def longest(accepts: Callable[[int], bool]) -> int:
    """Return the largest size that is accepted, by halving."""
    low, high = 30_000, MAX_LENGTH + 1
    assert accepts(low)
    assert not accepts(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if accepts(middle) else (low, middle)
    return low


@pytest.mark.parametrize("filler", [b"x", b"\xff", b"\0x"], ids=["text", "no UTF-8", "NUL"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_longest_properties_arrive(again: Again, kind: str, filler: bytes) -> None:
    size = longest(lambda size: again.send(kind, pairs_of(filler, size), b"filler").is_ok)
    again.reopen()
    sent: dict[bytes, bytes] = {}
    for number in range(-1, 1):
        body, data = b"%d" % number, pairs_of(filler, size + number)
        put = again.send(kind, data, body)
        assert put.is_ok
        sent[body] = data
        again.settle(kind, put)
    refused = again.send(kind, pairs_of(filler, size + 1))
    assert refused.status is PutStatus.PROPERTIES_SIZE_EXCEEDED
    assert "the maximum is" in refused.reason

    found = {record.body: record for record in again.records()}
    for body, data in sent.items():
        assert found[body].properties["user"] == decode_properties(data)["user"]
    assert again.store.redelivery.set_aside == 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_accepted_arrives_after_the_limit_was_lowered(again: Again, kind: str) -> None:
    body = b"x" * 5000
    put = again.send(kind, b"", body)
    again.reopen(max_message_size=100)
    assert again.send(kind, b"", body).status is PutStatus.MESSAGE_ILLEGAL
    again.settle(kind, put)
    assert [record.body for record in again.records()] == [body]


def full(needed: bytes, optional: bytes = b"") -> bytes:
    """Return properties that leave no room in a record."""
    data = needed + optional
    return data + pairs_of(b"x", MAX_LENGTH - len(data))


WHERE = b"REAL_TOPIC\x01T\x02REAL_QID\x012\x02"
BROKERS = b"MSG_REGION\x01DefaultRegion\x02TRACE_ON\x01true\x02CLUSTER\x01DefaultCluster\x02"
OUT = b"TIMER_OUT_MS\x01%d\x02" % (NOW + 90 * SECOND)


@pytest.mark.parametrize("optional", [b"", BROKERS])
@pytest.mark.parametrize(
    ("topic", "needed"),
    [
        (TIMER_TOPIC, OUT + WHERE),
        (SCHEDULE_TOPIC, b"DELAY\x011\x02" + WHERE),
        (HALF_TOPIC, b"TRAN_MSG\x01true\x02PGROUP\x01producers\x02" + WHERE),
    ],
)
def test_full_messages_of_older_stores_are_never_lost(
    again: Again, topic: str, needed: bytes, optional: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever wrote the store kept no room in them."""
    data = full(needed, optional)
    again.forge(topic, data, b"full")
    again.forge(topic, needed, b"good")
    again.pass_time(500)
    for question in again.asked[-2:]:
        half = question.half
        again.store.transactions.end(
            half.physical_offset, half.queue_offset, "producers", commit=True, is_answer=True
        )
    again.store.tick()
    again.pass_time(100)

    kept = [record for name, at in (("T", 2), (ASIDE, 0)) for record in again.records(name, at)]
    discarded = again.records(DISCARDED_TOPIC, 0)
    found = {record.body: record for record in [*kept, *discarded]}
    assert found.keys() == {b"full", b"good"}
    assert found[b"full"].properties["user"] == decode_properties(data)["user"]
    assert b"good" in [record.body for record in again.records()]
    set_aside = len(again.records(ASIDE, 0))
    assert again.store.redelivery.set_aside == set_aside == caplog.text.count("is set aside")
    if optional:
        assert set_aside == 0


FORGED_TIMERS = [
    b"",
    b"TIMER_OUT_MS\x01soon\x02" + WHERE,
    b"TIMER_OUT_MS\x01-999999999999999999\x02" + WHERE,
    b"TIMER_OUT_MS\x01999999999999999999\x02" + WHERE,
    OUT,
    OUT + b"REAL_TOPIC\x01../T\x02REAL_QID\x010\x02",
    OUT + b"REAL_TOPIC\x01T\x02REAL_QID\x01-1\x02",
    OUT + b"REAL_TOPIC\x01" + HALF_TOPIC.encode() + b"\x02REAL_QID\x010\x02",
    OUT + b"REAL_TOPIC\x01" + TIMER_TOPIC.encode() + b"\x02REAL_QID\x010\x02",
    OUT + b"REAL_TOPIC\x01" + SCHEDULE_TOPIC.encode() + b"\x02REAL_QID\x010\x02",
    OUT + b"REAL_TOPIC\x01" + b"x" * 300 + b"\x02REAL_QID\x010\x02",
    OUT + WHERE + b"TIMER_ROLL_TIMES\x01x\x02",
    OUT + WHERE + b"TIMER_DEL_UNIQKEY\x01x\x02",
]


def test_forged_timer_messages_stop_nothing(again: Again) -> None:
    for data in FORGED_TIMERS:
        again.forge(TIMER_TOPIC, data)
    assert again.send("timer", b"", b"good").is_ok
    again.pass_time(200)
    bodies = [record.body for record in again.records()]
    assert bodies.count(b"good") == 1
    assert again.records(HALF_TOPIC, 0) == again.records(SCHEDULE_TOPIC, 0) == []
    aside = again.records(ASIDE, 0)
    assert len(aside) == again.store.redelivery.set_aside == 9
    again.reopen()
    again.pass_time(100)
    assert len(again.records(ASIDE, 0)) == 9


def test_equal_messages_that_wait_long_all_arrive(again: Again) -> None:
    """Without unique keys nothing tells them apart when they are put again and again."""
    for _ in range(3):
        assert again.send("timer", b"", b"equal").is_ok
    again.pass_time(200)
    assert [record.body for record in again.records()] == [b"equal"] * 3


FORGED_DELAYS = [
    b"",
    b"DELAY\x011\x02",
    b"DELAY\x01x\x02" + WHERE,
    b"DELAY\x011\x02REAL_TOPIC\x01" + TIMER_TOPIC.encode() + b"\x02REAL_QID\x010\x02",
    b"DELAY\x011\x02REAL_TOPIC\x01" + OP_TOPIC.encode() + b"\x02REAL_QID\x010\x02",
    b"DELAY\x011\x02REAL_TOPIC\x01" + b"x" * 300 + b"\x02REAL_QID\x010\x02",
]


def test_forged_delayed_messages_stop_nothing(again: Again) -> None:
    for data in FORGED_DELAYS:
        again.forge(SCHEDULE_TOPIC, data)
    assert again.send("delay", b"", b"good").is_ok
    again.pass_time(10)
    assert b"good" in [record.body for record in again.records()]
    assert len(again.records(ASIDE, 0)) == again.store.redelivery.set_aside == 5
    assert again.records(TIMER_TOPIC, 0) == again.records(OP_TOPIC, 0) == []


FORGED_HALVES = [
    b"",
    b"PGROUP\x01producers\x02",
    WHERE + b"TRANSACTION_CHECK_TIMES\x01999999999999999999\x02",
    WHERE + b"TRANSACTION_CHECK_TIMES\x01-5\x02TRAN_PREPARED_QUEUE_OFFSET\x01-7\x02",
    WHERE + b"CHECK_IMMUNITY_TIME_IN_SECONDS\x01999999999999999999\x02",
    b"PGROUP\x01producers\x02REAL_TOPIC\x01" + TIMER_TOPIC.encode() + b"\x02REAL_QID\x010\x02",
]


def test_forged_halves_and_ops_stop_nothing(again: Again) -> None:
    many = b",".join(b"%d" % number for number in range(150_000))
    for body in (b"", b"-1,", b"9999999999999999999,", b"\xff,\0,7", many[: 1 << 19]):
        again.forge(OP_TOPIC, b"TAGS\x01d\x02", body)
    for data in FORGED_HALVES:
        again.forge(HALF_TOPIC, data)
    good = again.send("half that is checked", b"", b"good")
    assert good.is_ok
    again.settle("half that is checked", good)
    assert b"good" in [record.body for record in again.records()]
    assert again.records(TIMER_TOPIC, 0) == []
    again.pass_time(300)
    # Every forged half was asked for as often as others are, and is kept like others.
    position = again.store.config.consumer_offsets.query(GROUP, HALF_TOPIC, 0)
    assert position == again.store.queues.max_offset(HALF_TOPIC, 0) - 1


def test_an_op_ends_no_half_that_comes_after_it(again: Again) -> None:
    again.forge(OP_TOPIC, b"TAGS\x01d\x02", b"0,1,2,")
    put = again.send("half that is checked", b"", b"good")
    again.pass_time(1)
    again.settle("half that is checked", put)
    assert [record.body for record in again.records()] == [b"good"]


def test_what_cannot_be_put_now_waits(again: Again, caplog: pytest.LogCaptureFixture) -> None:
    """A full disk sets nothing aside, and is not asked in a hot loop."""
    caplog.set_level(logging.WARNING)
    for kind in ("timer", "delay", "half that is checked"):
        assert again.send(kind, b"", kind.encode()).is_ok
    again.forge(TIMER_TOPIC, OUT)
    appender = again.store._appender  # pyright: ignore[reportPrivateUsage]
    appender.set_not_writable("the disk is full")
    again.pass_time(200)
    assert again.records() == []
    assert again.store.redelivery.set_aside == 0
    assert len(caplog.records) < 10
    appender.set_not_writable(None)
    again.settle("half that is checked", PutResult(PutStatus.PUT_OK))
    assert {record.body for record in again.records()} == {
        b"timer",
        b"delay",
        b"half that is checked",
    }
    assert again.store.redelivery.set_aside == 1


@settings(
    max_examples=25,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    messages=st.lists(
        st.tuples(
            st.sampled_from(KINDS),
            st.sampled_from((0, 100, 32_400, 32_500, 32_560, 32_600, 32_640, 32_660, 32_760)),
            st.integers(0, 70),
            st.binary(min_size=1, max_size=4).filter(lambda part: not set(part) & {1, 2}),
            st.binary(max_size=300),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_whatever_is_accepted_arrives(
    tmp_path_factory: pytest.TempPathFactory,
    messages: list[tuple[str, int, int, bytes, bytes]],
) -> None:
    again = Again(tmp_path_factory.mktemp("store"))
    sent: dict[bytes, str] = {}
    for number, (kind, size, more, filler, tail) in enumerate(messages):
        data = pairs_of(filler, max(10, size + more))
        body = b"%d:" % number + tail
        put = again.send(kind, data, body)
        if put.is_ok:
            sent[body] = decode_properties(data)["user"]
            again.settle(kind, put)
        else:
            assert put.status is PutStatus.PROPERTIES_SIZE_EXCEEDED
    assert {record.body: record.properties["user"] for record in again.records()} == sent
    assert again.store.redelivery.set_aside == 0
    again.store.close()
