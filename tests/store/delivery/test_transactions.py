"""Transactions: half, commit, rollback, check-back, with the clock of the test."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mqlake.formats.properties import decode_properties, encode_properties
from mqlake.formats.record import Record
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutResult, PutStatus
from mqlake.store.delivery.redelivery import Redelivery
from mqlake.store.delivery.schedule import Schedule
from mqlake.store.delivery.transaction_messages import (
    DISCARDED_TOPIC,
    GROUP,
    HALF_TOPIC,
    OP_TOPIC,
    committed,
    ended_by,
    half_of,
)
from mqlake.store.delivery.transactions import CheckBack, EndStatus, Transactions
from mqlake.store.live_settings import current
from mqlake.store.reader import StoreReader
from mqlake.store.services import Services
from mqlake.store.settings import StoreSettings
from mqlake.store.stored import Stored
from tests.crash.clock import ManualClock
from tests.golden import store
from tests.store.live_parts import NOW, LiveParts
from tests.store.record_crcs import without_crc

SETTINGS = StoreSettings(mapped_file_size_commit_log=1 << 20, transaction_check_max=3)
TIME_OUT = SETTINGS.transaction_time_out
INTERVAL = SETTINGS.transaction_check_interval


class Transacting(LiveParts):
    """A store with transactions, whose check-backs are collected."""

    def __init__(self, path: Path, clock: ManualClock | None = None) -> None:
        self.time = clock or ManualClock(NOW)
        super().__init__(path, SETTINGS, self.time)
        self.asked: list[CheckBack] = []
        self.refusals: list[PutResult | None] = []
        self.transactions = self.make_transactions()
        self.transactions.ask_with(self.asked.append)

    def make_transactions(self) -> Transactions:
        """Return transactions of this store whose producers nobody asks yet."""
        schedule = Schedule(current(self.settings))
        return Transactions(
            log=self.log,
            queues=self.queues,
            config=self.config,
            put=self.put_as_is,
            redelivery=Redelivery(self.put_as_is, self.put_as_is, self.config),
            put_final=lambda message: self.put_as_is(schedule.apply(message)),
            settings=current(self.settings),
            clock=self.time,
        )

    def put_as_is(self, message: Message) -> PutResult:
        refusal = self.refusals.pop(0) if self.refusals else None
        return refusal or self.appender.put(message)

    def prepare(self, body: str, **properties: str) -> PutResult:
        message = Message(topic="T", body=body.encode(), queue_id=3, properties=properties)
        result = self.transactions.prepare(message, "PG")
        assert result.is_ok
        self.tick()
        return result

    def end(self, put: PutResult | CheckBack, *, commit: bool = True) -> EndStatus:
        is_answer = isinstance(put, CheckBack)
        at = put.half if isinstance(put, CheckBack) else put
        status, _ = self.transactions.end(
            at.physical_offset, at.queue_offset, "PG", commit=commit, is_answer=is_answer
        )
        self.tick()
        return status

    def check(self, wait: int = INTERVAL, most: int = 1000) -> list[str]:
        """Let time pass, check, and return the bodies of the halves that were asked for."""
        self.time.forward(wait)
        self.asked.clear()
        while self.transactions.check(most):
            pass
        self.tick()
        return [question.half.body.decode() for question in self.asked]

    def bodies(self, topic: str = "T", queue_id: int = 3) -> list[str]:
        return [record.body.decode() for record in self.records(topic, queue_id)]

    def stop(self) -> None:
        """Keep everything, as a clean stop does."""
        self.log.unsynced().complete()
        self.transactions.keep()
        self.config.persist()

    def positions(self) -> tuple[int | None, int | None]:
        offsets = self.config.consumer_offsets
        return offsets.query(GROUP, HALF_TOPIC, 0), offsets.query(GROUP, OP_TOPIC, 0)


@pytest.fixture
def live(tmp_path: Path) -> Transacting:
    return Transacting(tmp_path)


def golden(topic: str) -> list[Record]:
    with StoreReader.open(store("rmq5-clean").path) as reader:
        return [
            record
            for queue_id in reader.queues(topic)
            for record in reader.get(topic, queue_id, reader.queue(topic, queue_id)[0], 300).records
        ]


def test_a_half_is_rocketmqs() -> None:
    halves = [
        half for half in golden(HALF_TOPIC) if "TRANSACTION_CHECK_TIMES" not in half.properties
    ]
    assert len(halves) > 20
    for half in halves:
        sent = {
            name: value
            for name, value in half.properties.items()
            if name not in ("REAL_TOPIC", "REAL_QID", "__transactionId__")
        }
        message = Message(
            topic=half.properties["REAL_TOPIC"],
            body=half.body,
            queue_id=int(half.properties["REAL_QID"]),
            sys_flag=half.sys_flag | 4,
            encoded_properties=encode_properties(sent),
        )
        made = half_of(message, encode_properties(sent), None)
        assert (made.topic, made.queue_id, made.sys_flag) == (HALF_TOPIC, 0, half.sys_flag)
        assert decode_properties(made.encoded_properties or b"") == half.properties


def test_a_committed_message_is_rocketmqs() -> None:
    halves = {half.physical_offset: half for half in golden(HALF_TOPIC)}
    compared = 0
    for record in golden("TopicTx"):
        half = halves.get(record.prepared_transaction_offset)
        if half is not None:
            made = committed(Stored(half, encode_properties(half.properties)))
            assert made is not None
            compared += 1
            assert (made.topic, made.queue_id, made.sys_flag) == (
                "TopicTx",
                record.queue_id,
                record.sys_flag,
            )
            assert decode_properties(made.encoded_properties or b"") == record.properties
            assert made.prepared_transaction_offset == half.physical_offset
            assert (made.body, made.flag, made.born_timestamp) == (
                record.body,
                record.flag,
                record.born_timestamp,
            )
    assert compared > 20


def test_rocketmqs_op_messages_are_understood() -> None:
    ended = [offset for op in golden(OP_TOPIC) for offset in ended_by(op)]
    assert ended[:3] == [0, 1, 3]
    assert len(ended) > 30


def test_a_half_is_not_seen_until_it_is_committed(live: Transacting) -> None:
    put = live.prepare("a", UNIQ_KEY="0A", TAGS="tag", KEYS="k", DELAY="3")
    assert live.bodies() == []
    assert live.end(put) is EndStatus.OK
    (record,) = live.records("T", 3)
    assert record.body == b"a"
    assert record.sys_flag == 8
    assert record.prepared_transaction_offset == put.physical_offset
    assert without_crc(record.properties) == {
        "UNIQ_KEY": "0A",
        "TAGS": "tag",
        "KEYS": "k",
        "TRAN_MSG": "true",
        "PGROUP": "PG",
        "__transactionId__": "0A",
    }
    (op,) = live.records(OP_TOPIC)
    assert (op.body, without_crc(op.properties)) == (b"0,", {"WAIT": "true", "TAGS": "d"})


def test_what_is_rolled_back_is_never_seen(live: Transacting) -> None:
    put = live.prepare("a")
    assert live.end(put, commit=False) is EndStatus.OK
    assert live.check() == []
    assert live.bodies() == []


def test_ends_that_are_refused(live: Transacting) -> None:
    put = live.prepare("a")
    other = live.put(Message(topic="T", body=b"plain", properties={"PGROUP": "PG"}))
    end = live.transactions.end
    where = put.physical_offset, put.queue_offset
    assert end(*where, "other", commit=True).status is EndStatus.WRONG_GROUP
    assert end(where[0], 5, "PG", commit=True).status is EndStatus.WRONG_OFFSET
    for offset in (-1, 1, other.physical_offset, live.log.end, 1 << 62):
        assert end(offset, 0, "PG", commit=True).status is EndStatus.NOT_FOUND
    assert live.bodies() == []
    assert live.end(put, commit=False) is EndStatus.OK
    assert live.end(put, commit=True) is EndStatus.ALREADY_ENDED
    assert live.bodies() == []


@pytest.mark.parametrize(
    "message",
    [
        Message(topic="../T", body=b""),
        Message(topic="t" * 256, body=b""),
        Message(topic="T", body=b"", queue_id=-1),
        Message(topic="T", body=b"", tags="\x02"),
    ],
)
def test_what_could_not_be_committed_is_not_prepared(live: Transacting, message: Message) -> None:
    end = live.log.end
    assert live.transactions.prepare(message, "PG").status is PutStatus.MESSAGE_ILLEGAL
    assert live.log.end == end


def test_a_commit_that_is_not_taken_can_be_repeated(live: Transacting) -> None:
    put = live.prepare("a")
    live.refusals = [PutResult(PutStatus.OS_PAGE_CACHE_BUSY, reason="busy")]
    assert live.end(put) is EndStatus.NOT_PUT
    assert live.records(OP_TOPIC) == []
    assert live.end(put) is EndStatus.OK
    assert live.bodies() == ["a"]


def test_an_op_that_is_not_taken_is_put_later(live: Transacting) -> None:
    put = live.prepare("a")
    live.refusals = [None, PutResult(PutStatus.OS_PAGE_CACHE_BUSY, reason="busy")]
    assert live.end(put) is EndStatus.OK
    assert live.records(OP_TOPIC) == []
    assert live.check() == []
    assert len(live.records(OP_TOPIC)) == 1
    assert live.bodies() == ["a"]


def sent(half: Record) -> Record:
    return msgspec.structs.replace(half, properties=without_crc(half.properties))


def test_producers_are_asked_after_the_time_out(live: Transacting) -> None:
    first = live.prepare("a", UNIQ_KEY="0A")
    assert live.check(TIME_OUT) == []
    assert live.check(1) == ["a"]
    (question,) = live.asked
    assert (question.group, question.topic, question.queue_id) == ("PG", "T", 3)
    assert question.half.physical_offset > first.physical_offset
    assert question.half.properties["TRANSACTION_CHECK_TIMES"] == "1"
    assert sent(question.half) == sent(live.records(HALF_TOPIC)[-1])
    assert live.end(question) is EndStatus.OK
    assert live.check() == []
    assert live.bodies() == ["a"]


def test_a_young_half_ends_the_look(live: Transacting) -> None:
    live.prepare("a")
    live.time.forward(TIME_OUT)
    live.prepare("b")
    assert live.check(1) == ["a"]
    assert live.check(TIME_OUT) == ["b", "a"]


def test_halves_that_nobody_answers_for_are_discarded(live: Transacting) -> None:
    live.prepare("a", TAGS="t")
    assert [live.check() for _ in range(4)] == [["a"], ["a"], ["a"], []]
    (record,) = live.records(DISCARDED_TOPIC)
    assert (record.body, record.properties["TRANSACTION_CHECK_TIMES"]) == (b"a", "3")
    assert live.config.topics.get(DISCARDED_TOPIC) is not None
    assert live.check() == []
    assert len(live.records(HALF_TOPIC)) == 4
    assert live.bodies() == []


def test_a_half_older_than_the_files_are_kept_is_discarded(live: Transacting) -> None:
    live.prepare("a")
    hours = live.settings.file_reserved_time
    assert live.check(hours * 3600 * 1000 + 1) == []
    assert [record.body for record in live.records(DISCARDED_TOPIC)] == [b"a"]


def test_a_half_that_cannot_be_put_again_is_asked_for_later(live: Transacting) -> None:
    live.prepare("a")
    busy = PutResult(PutStatus.OS_PAGE_CACHE_BUSY, reason="busy")
    live.refusals = [busy]
    assert live.check() == []
    for _ in range(3):
        assert live.check() == ["a"]
    live.refusals = [busy]
    live.check()
    assert live.records(DISCARDED_TOPIC) == []
    live.check()
    assert len(live.records(DISCARDED_TOPIC)) == 1


def test_nobody_is_asked_without_a_broker(live: Transacting) -> None:
    live.transactions = live.make_transactions()
    live.prepare("a")
    for _ in range(9):
        assert live.check() == []
    assert len(live.records(HALF_TOPIC)) == 1


def test_immunity_puts_the_question_off(live: Transacting) -> None:
    first = live.prepare("a", CHECK_IMMUNITY_TIME_IN_SECONDS="70")
    live.prepare("b")
    assert live.check() == ["b"]
    assert live.check() == ["b"]
    assert live.end(live.asked[0]) is EndStatus.OK
    copies = [r for r in live.records(HALF_TOPIC) if r.body == b"a"]
    assert [r.properties.get("TRAN_PREPARED_QUEUE_OFFSET") for r in copies] == [None, "0", "0"]
    assert live.check() == ["a"]
    assert live.end(first) is EndStatus.TOO_LATE
    assert live.end(live.asked[0]) is EndStatus.OK
    assert live.check() == []
    assert sorted(live.bodies()) == ["a", "b"]


def test_a_commit_within_immunity_settles_the_copies_too(live: Transacting) -> None:
    first = live.prepare("a", CHECK_IMMUNITY_TIME_IN_SECONDS="70")
    assert live.check() == []
    assert live.end(first) is EndStatus.OK
    for _ in range(5):
        assert live.check() == []
    assert live.bodies() == ["a"]
    assert len(live.records(HALF_TOPIC)) == 2


@pytest.mark.parametrize("text", ["x", "-1", "", "9" * 30])
def test_immunity_that_is_no_number_counts_as_the_time_out(live: Transacting, text: str) -> None:
    message = f"TRAN_MSG\x01true\x02CHECK_IMMUNITY_TIME_IN_SECONDS\x01{text}\x02".encode()
    live.transactions.prepare(Message(topic="T", body=b"a", encoded_properties=message), "PG")
    live.tick()
    assert live.check(TIME_OUT + 1) == ["a"]


def test_ops_of_any_content_do_no_harm(live: Transacting) -> None:
    live.prepare("a")
    for body in (b"", b",,", b"x", b"-3,", b"9" * 40 + b",", b"\xff\xfe", b"77777,"):
        live.put(Message(topic=OP_TOPIC, body=body, tags="d"))
    live.put(Message(topic=OP_TOPIC, body=b"0,", tags="other"))
    assert live.check() == ["a"]
    live.put(Message(topic=OP_TOPIC, body=b"0,1,", tags="d"))
    assert live.check() == []


def test_many_halves_take_several_calls(live: Transacting) -> None:
    for number in range(10):
        live.prepare(str(number))
    live.time.forward(INTERVAL)
    assert live.transactions.check(4)
    assert len(live.asked) == 4
    services = Services(live.time, live.transactions.services())
    live.tick()
    live.time.forward(100)
    services.due()
    assert [question.half.body for question in live.asked] == [b"%d" % n for n in range(10)]


def test_positions_are_kept_once_they_are_on_the_disk(live: Transacting) -> None:
    live.end(live.prepare("a"))
    live.prepare("b")
    live.log.unsynced().complete()
    live.check()
    assert live.positions() == (None, None), "the copy of b is not on the disk yet"
    live.log.unsynced().complete()
    live.transactions.keep()
    assert live.positions() == (2, 1)


def test_a_restart_asks_on_and_remembers_what_ended(live: Transacting, tmp_path: Path) -> None:
    live.end(live.prepare("a"))
    last = live.prepare("b")
    live.prepare("c")
    live.check()
    live.stop()
    again = Transacting(tmp_path, live.time)
    assert again.positions() == (3, 1)
    assert again.check() == ["b", "c"]
    assert again.end(again.asked[1], commit=False) is EndStatus.OK
    again.stop()
    once_more = Transacting(tmp_path, live.time)
    assert once_more.end(again.asked[1]) is EndStatus.ALREADY_ENDED
    assert once_more.check() == ["b"]
    assert once_more.bodies() == ["a"]
    assert once_more.end(last) is EndStatus.OK


def test_a_crash_before_anything_is_kept_asks_only_who_has_not_ended(
    live: Transacting, tmp_path: Path
) -> None:
    for name in "abcd":
        live.prepare(name)
    for question in live.check() and list(live.asked)[:2]:
        live.end(question)
    again = Transacting(tmp_path, live.time)
    assert again.positions() == (None, None)
    # The originals of a and b have not ended; their copies have, and are not asked for.
    assert again.check() == ["a", "b", "c", "d", "c", "d"]


def test_a_delayed_commit_is_delivered_late(live: Transacting) -> None:
    """A half of a broker that left DELAY in it: RocketMQ's hook takes the committed message."""
    pairs = (
        b"TRAN_MSG\x01true\x02PGROUP\x01PG\x02DELAY\x015\x02REAL_TOPIC\x01T\x02REAL_QID\x013\x02"
    )
    put = live.put(Message(topic=HALF_TOPIC, body=b"a", encoded_properties=pairs))
    assert live.end(put) is EndStatus.OK
    assert live.bodies() == []
    assert live.bodies("SCHEDULE_TOPIC_XXXX", 4) == ["a"]


def test_rocketmqs_halves_are_gone_on_with(tmp_path: Path) -> None:
    """What RocketMQ 5.5 left open at its clean stop is what is asked for here, nothing else."""
    path = store("rmq5-clean").copy(tmp_path / "store")
    with StoreReader.open(path) as reader:
        newest = max(record.store_timestamp for record in golden(HALF_TOPIC))
        end = reader.queue(HALF_TOPIC, 0).max_offset
    live = Transacting(path, ManualClock(newest + INTERVAL))
    half, op = live.positions()
    assert half is not None
    assert op is not None
    ended = {offset for record in golden(OP_TOPIC) for offset in ended_by(record)}
    open_halves = [r for r in golden(HALF_TOPIC) if half <= r.queue_offset < end]
    unanswered = [r for r in open_halves if r.queue_offset not in ended]
    too_often = [r for r in unanswered if int(r.properties.get("TRANSACTION_CHECK_TIMES", 0)) >= 3]
    before = len(live.records(DISCARDED_TOPIC))
    live.check()
    assert len(live.asked) == len(unanswered) - len(too_often)
    assert len(live.records(DISCARDED_TOPIC)) == before + len(too_often)


ACTIONS = st.lists(
    st.sampled_from(["prepare", "commit", "rollback", "answer", "check", "restart", "crash"]),
    max_size=40,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=ACTIONS, data=st.data())
def test_every_half_ends_as_its_producer_says(
    tmp_path_factory: pytest.TempPathFactory, actions: list[str], data: st.DataObject
) -> None:
    path, clock = tmp_path_factory.mktemp("store"), ManualClock(NOW)
    live = Transacting(path, clock)
    puts: dict[str, PutResult] = {}
    decided: dict[str, bool] = {}
    for number, action in enumerate(actions):
        if action == "prepare":
            puts[str(number)] = live.prepare(str(number))
        elif action in ("commit", "rollback") and (left := sorted(set(puts) - set(decided))):
            body = data.draw(st.sampled_from(left))
            if live.end(puts[body], commit=action == "commit") is EndStatus.OK:
                decided[body] = action == "commit"
        elif action == "answer":
            for question in live.asked:
                commit = decided.setdefault(question.half.body.decode(), True)
                live.end(question, commit=commit)
            live.asked.clear()
        elif action == "check":
            live.check(TIME_OUT + 1)
        elif action in ("restart", "crash"):
            if action == "restart":
                live.stop()
            live = Transacting(path, clock)
    discarded = {record.body.decode() for record in live.records(DISCARDED_TOPIC)}
    for _ in range(6):
        for question in live.check() and list(live.asked):
            commit = decided.setdefault(question.half.body.decode(), True)
            assert live.end(question, commit=commit) in (EndStatus.OK, EndStatus.ALREADY_ENDED)
    seen = set(live.bodies())
    assert {body for body, commit in decided.items() if commit} - discarded <= seen
    assert seen <= {body for body, commit in decided.items() if commit}
    assert live.check() == [], "nothing is left to ask for"
    discarded = {record.body.decode() for record in live.records(DISCARDED_TOPIC)}
    assert set(puts) == set(decided) | discarded
