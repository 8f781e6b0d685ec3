"""Runs of records as columns say what messages say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.arrow import columns
from mqlake.arrow.columns import TooLongError, to_columns
from mqlake.arrow.record_run import RecordRun, read_run
from mqlake.client import ReceivedMessage
from mqlake.client.consumer.subscriptions import ALL, SelectedTopic
from mqlake.client.received import decode_messages, decode_run
from mqlake.errors import FormatError
from mqlake.formats import record
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.messages.body_compression import compress
from mqlake.protocol.namespace import Namespace

QUEUE = MessageQueue("orders", "a", 3)
RETRIES = MessageQueue("%RETRY%g", "a", 0)
NOWHERE = Namespace("")
PROPERTIES = st.dictionaries(
    st.sampled_from(("TAGS", "KEYS", "UNIQ_KEY", "colour")),
    st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=("Cs",)), min_size=1),
)


@st.composite
def records(draw: st.DrawFn, queue: MessageQueue = QUEUE) -> list[bytes]:
    """Records of one queue, one behind the other; some bodies compressed, some damaged."""
    first, made = draw(st.integers(0, 2**40)), list[bytes]()
    for number in range(draw(st.integers(1, 5))):
        body, flag = draw(st.binary(max_size=60)), 0
        if draw(st.booleans()):
            body, flag = compress(body, "zlib", 3)
        data = bytearray(
            record.encode(
                topic=queue.topic,
                body=body,
                properties=draw(PROPERTIES),
                queue_id=queue.queue_id,
                queue_offset=first + number,
                physical_offset=draw(st.integers(0, 2**60)),
                flag=draw(st.integers(-5, 5)),
                sys_flag=flag,
                born_host=draw(st.sampled_from(("10.0.0.1:77", "[2001:db8:0:0:0:0:0:1]:77"))),
                born_timestamp=draw(st.integers(0, 2**40)),
                store_timestamp=draw(st.integers(0, 2**40)),
                reconsume_times=draw(st.integers(0, 3)),
            )
        )
        if body and draw(st.integers(0, 4)) == 0:
            data[record.BODY_CRC_AT] ^= 1
        made.append(bytes(data))
    return made


def run_of(
    data: bytes, selection: str = ALL, first: int = 0, queue: MessageQueue = QUEUE
) -> RecordRun | None:
    return read_run(data, queue, SelectedTopic(queue.topic, selection, 1), first, NOWHERE)[0]


def row(message: ReceivedMessage) -> dict[str, Any]:
    """What the columns must say."""
    return {
        "topic": message.topic,
        "queueId": message.queue.queue_id,
        "queueOffset": message.queue_offset,
        "physicalOffset": message.physical_offset,
        "sysFlag": message.sys_flag,
        "flag": message.flag,
        "bornHost": message.born_host,
        "storeHost": message.store_host,
        "reconsumeTimes": message.reconsume_times,
        "properties": message.properties,
        "tags": message.tags,
        "keys": message.keys,
        "body": message.body,
        "msgId": message.offset_message_id,
    }


def rows(table: Any) -> list[dict[str, Any]]:
    kept = table.drop_columns(
        ["size", "bodyCrc", "bornTimestamp", "storeTimestamp", "preparedTransactionOffset"]
    ).to_pylist()
    return [{**each, "properties": dict(each["properties"])} for each in kept]


@given(st.lists(records(), min_size=1, max_size=3))
def test_columns_say_what_messages_say(pulls: list[list[bytes]]) -> None:
    bodies = [b"".join(each) for each in pulls]
    runs = [run for data in bodies if (run := run_of(data)) is not None]
    messages = [each for data in bodies for each in decode_messages(data, "a", ReceivedMessage)]
    table, faults = to_columns(runs)
    assert rows(table) == [row(message) for message in messages]
    assert faults.keys() == {n for n, message in enumerate(messages) if message.body_fault}
    assert sum(run.message_count() for run in runs) == len(messages)
    times = [table.column(name).cast("int64").to_pylist() for name in ("bornTimestamp",)]
    assert times == [[message.born_timestamp for message in messages]]


@given(records(), st.sampled_from((ALL, "red", "red || blue")), st.integers(-1, 5))
def test_what_is_not_wanted_is_left_out(pull: list[bytes], selection: str, skipped: int) -> None:
    data = b"".join(pull)
    messages = list(decode_messages(data, "a", ReceivedMessage))
    first = messages[0].queue_offset + skipped
    wanted = SelectedTopic("orders", selection, 1)
    kept = [each for each in messages if each.queue_offset >= first and wanted.takes(each)]
    run = run_of(data, selection, first)
    if not kept:
        assert run is None
        return
    assert run is not None
    assert [each.body for each in run.messages()] == [each.body for each in kept]
    assert run.queue_offset == kept[0].queue_offset
    assert rows(to_columns([run])[0]) == [row(message) for message in kept]


@given(records(RETRIES))
def test_records_of_a_retry_topic_have_their_first_topic(pull: list[bytes]) -> None:
    more = record.encode(
        topic=RETRIES.topic, properties={"RETRY_TOPIC": "orders"}, queue_offset=2**41
    )
    run = run_of(b"".join([*pull, more]), queue=RETRIES)
    assert run is not None
    assert to_columns([run])[0].column("topic").to_pylist() == [RETRIES.topic] * len(pull) + [
        "orders"
    ]


def test_names_are_without_their_namespace() -> None:
    queue = MessageQueue("shop%orders", "a", 0)
    data = record.encode(topic=queue.topic)
    run, _ = read_run(data, queue, SelectedTopic(queue.topic, ALL, 1), 0, Namespace("shop"))
    assert run is not None
    assert to_columns([run, run])[0].column("topic").to_pylist() == ["orders", "orders"]


@given(st.binary(max_size=200))
def test_what_is_no_record_is_refused(data: bytes) -> None:
    if data:
        with pytest.raises(FormatError):
            run_of(data)
    good = record.encode(topic="orders", body=b"good")
    run = run_of(good + data)
    assert run is not None
    assert [message.body for message in run.messages()] == [b"good"]


@given(records(), st.binary(max_size=120))
def test_where_a_run_stops_is_told(pull: list[bytes], rest: bytes) -> None:
    data, last = b"".join(pull) + rest, pull[-1]
    run, stop = read_run(data, QUEUE, SelectedTopic("orders", ALL, 1), 0, NOWHERE)
    assert run is not None
    messages, end = decode_run(data, "a", ReceivedMessage)
    assert run.message_count() == len(messages) == len(pull)
    assert end == len(data) - len(rest)
    assert stop == (decode_run(last, "a", ReceivedMessage)[0][0].queue_offset if rest else None)


def test_runs_that_are_too_long_together_are_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MAX_BODIES", 10_000)
    monkeypatch.setattr(columns, "MAX_BODY", 5_000)
    body, flag = compress(bytes(4_000), "zlib", 3)
    run = run_of(record.encode(topic="orders", body=body, sys_flag=flag) * 2)
    plain = run_of(record.encode(topic="orders", body=bytes(6_000)))
    assert run is not None
    assert plain is not None
    assert to_columns([plain])[0].num_rows == 1
    for runs in ([run, run], [plain, plain]):
        with pytest.raises(TooLongError):
            to_columns(runs)
    table, faults = to_columns([run])
    assert (table.column("body")[0].as_py(), faults) == (bytes(4_000), {})


def test_text_that_is_no_utf_8_is_replaced() -> None:
    data = record.encode(topic="orders", properties=b"TAGS\x01\xff\x02", body=b"x")
    run = run_of(data)
    assert run is not None
    assert to_columns([run])[0].column("tags").to_pylist() == ["\ufffd"]
