"""Rows become the records that the live store makes of the same messages."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mqlake.errors import FormatError, StoreError
from mqlake.formats import record_crc
from mqlake.formats.record import Record
from mqlake.spark.sink import stage
from mqlake.spark.sink.target import check_target
from mqlake.store.append.message import Message
from mqlake.store.blocking import BlockingMessageStore
from tests.jobs.model import read_log
from tests.peer.workload import puts, to_message
from tests.spark.sink.derived_files import check_derived_files
from tests.spark.sink.writing import SMALL, TYPES, to_batch, write
from tests.store.record_crcs import check_crcs, without_crc

_SHOWN = (
    "topic",
    "queue_id",
    "flag",
    "sys_flag",
    "born_timestamp",
    "born_host",
    "store_host",
    "reconsume_times",
    "prepared_transaction_offset",
    "body",
    "properties",
)


def messages_of(seed: int, count: int) -> list[Message]:
    made = [to_message(put) for put in puts(seed, count)]
    return [message for message in made if isinstance(message, Message)]


def shown(record: Record, *, placed: bool = True) -> dict[str, Any]:
    values = {
        name: getattr(record, name)
        for name in [
            "topic",
            "queue_id",
            "flag",
            "sys_flag",
            "born_timestamp",
            "born_host",
            "store_host",
            "reconsume_times",
            "prepared_transaction_offset",
            "body",
        ]
    }
    values["properties"] = without_crc(record.properties)
    if placed:
        values |= {"queue_offset": record.queue_offset, "offset": record.physical_offset}
    return values


@pytest.mark.parametrize("frame_size", [1 << 12, stage.FRAME_SIZE])
def test_the_store_is_as_the_live_store_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frame_size: int
) -> None:
    monkeypatch.setattr(stage, "FRAME_SIZE", frame_size)
    monkeypatch.setattr(stage, "_BATCH_SIZE", 1 << 14)
    messages = messages_of(1, 900)
    with BlockingMessageStore.open(tmp_path / "live", SMALL) as live:
        for message in messages:
            live.put(message)

    thirds = [messages[:300], messages[300:301], messages[301:]]
    assert write(tmp_path / "sink", [to_batch(part) for part in thirds], **SMALL) == len(messages)

    found = list(read_log(tmp_path / "sink"))
    assert [shown(one) for one in found] == [shown(one) for one in read_log(tmp_path / "live")]
    assert check_crcs(tmp_path / "sink") == len(messages)
    assert len({one.store_timestamp for one in found}) == 1
    assert len(list((tmp_path / "sink" / "commitlog").iterdir())) > 4
    assert not (tmp_path / "sink" / "abort").exists()
    check_derived_files(tmp_path / "sink")


def test_a_second_write_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "store"
    messages = messages_of(2, 400)
    write(path, [to_batch(messages[:150])], **SMALL)
    with BlockingMessageStore.open(path, SMALL) as store:
        for message in messages[150:200]:
            store.put(message)
    write(path, [to_batch(messages[200:])], **(SMALL | {"mappedFileSizeCommitLog": 1 << 20}))

    with BlockingMessageStore.open(tmp_path / "live", SMALL) as live:
        for message in messages:
            live.put(message)
    assert list(map(shown, read_log(path))) == list(map(shown, read_log(tmp_path / "live")))
    assert {file.stat().st_size for file in (path / "commitlog").iterdir()} == {1 << 16}
    check_derived_files(path)


def test_slices_and_null_maps_and_columns_before_properties(tmp_path: Path) -> None:
    chance = random.Random(3)
    rows: list[dict[str, Any]] = []
    for number in range(60):
        pairs = {"a": str(number), "TAGS": "old", "KEYS": "old", "UNIQ_KEY": "old"}
        rows.append(
            {
                "body": b"%d" % number,
                "properties": chance.choice((None, {}, pairs)),
                "tags": chance.choice((None, "", "new")),
                "keys": chance.choice((None, [], ["k1", "k2"])),
                "uniqKey": chance.choice((None, "unique")),
            }
        )
    fields = ("body", "properties", "tags", "keys")
    schema = pa.schema([TYPES.field(name) for name in fields] + [("uniqKey", pa.string())])
    batch = pa.RecordBatch.from_pylist(rows, schema=schema).slice(7, 40)

    write(tmp_path / "store", [batch], topic="T", **SMALL)

    found = list(read_log(tmp_path / "store"))
    assert len(found) == 40
    for record, row in zip(found, rows[7:47], strict=True):
        expected = dict(row["properties"] or {})
        expected |= {"TAGS": row["tags"]} if row["tags"] else {}
        expected |= {"KEYS": "k1 k2"} if row["keys"] else {}
        expected |= {"UNIQ_KEY": row["uniqKey"]} if row["uniqKey"] else {}
        assert (record.body, without_crc(record.properties)) == (row["body"], expected)


def test_only_the_column_delays(tmp_path: Path) -> None:
    rows = [one_row(properties={"DELAY": "1"}), one_row(properties={"DELAY": "1"}, delayLevel=3)]
    write(tmp_path / "store", rows, **SMALL)
    kept, delayed = read_log(tmp_path / "store")
    assert (kept.topic, without_crc(kept.properties)) == ("T", {"DELAY": "1"})
    assert (delayed.topic, delayed.queue_id) == ("SCHEDULE_TOPIC_XXXX", 2)
    assert delayed.properties["DELAY"] == "3"
    assert delayed.properties["REAL_TOPIC"] == "T"


def test_queues_by_turns_and_a_topic_for_all(tmp_path: Path) -> None:
    batch = pa.RecordBatch.from_pydict(
        {"body": ["a", "b", "c", "d", "e"], "topic": [None, "x", "y", "z", "x"]}
    )
    write(tmp_path / "store", [batch, batch], topic="All", defaultTopicQueueNums=3, **SMALL)
    found = list(read_log(tmp_path / "store"))
    assert [one.topic for one in found] == ["All"] * 10
    assert [one.queue_id for one in found] == [0, 1, 2, 0, 1, 1, 2, 0, 1, 2]
    assert [one.queue_offset for one in found] == [0, 0, 0, 1, 1, 2, 1, 2, 3, 2]
    with BlockingMessageStore.open(tmp_path / "store", SMALL) as store:
        topic = store.core.config.topics.get("All")
    assert topic is not None
    assert (topic.read_queue_nums, topic.write_queue_nums) == (3, 3)


def one_row(**values: Any) -> Any:
    row = {"topic": "T", "body": b"body"} | values
    schema = pa.schema([TYPES.field(name) for name in row])
    return pa.RecordBatch.from_pylist([row], schema=schema)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"body": None}, r"^a row has no body: it is null$"),
        ({"topic": None}, r"^a row has no topic: it is null$"),
        ({"topic": "../up"}, r"^not a valid topic name: '../up'$"),
        ({"topic": "t" * 256}, r"^the topic has 256 bytes; the maximum is 255$"),
        ({"queueId": -1}, r"^queueId: -1 is not a queue id$"),
        ({"tags": "a\x02b"}, r"^column tags: a text contains the character U\+0002"),
        ({"keys": ["a", None]}, r"^a key is null$"),
        ({"properties": {"a": None}}, r"^property 'a' is null$"),
        ({"properties": {"": "x"}}, r"^property cannot be stored: '' = 'x'$"),
        ({"properties": {"a\x01": "x"}}, r"^property cannot be stored"),
        ({"properties": {"ok": "1", "a": "x\x02"}}, r"^property cannot be stored: 'a' = 'x\\x02'$"),
        ({"properties": {"INNER_NUM": "3"}}, r"^property INNER_NUM: inner batches cannot"),
        ({"properties": {"a": "x" * 33000}}, r"^the properties of a row have 33023 bytes"),
        ({"sysFlag": 128}, r"^sysFlag: inner batches cannot be written$"),
        ({"bornHost": "nowhere"}, r"^bornHost: "),
        ({"body": b"x" * (5 << 20)}, r"^a body has 5242880 bytes; the maximum \(maxMessageSize\)"),
    ],
)
def test_rows_that_cannot_be_stored(tmp_path: Path, values: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        write(tmp_path / "store", [one_row(**values)])
    assert not (tmp_path / "store").exists()
    assert list((tmp_path / "store-staging").iterdir()) == []


@pytest.mark.parametrize("size", [66_000, (1 << 16) - 90])
def test_a_record_that_no_file_can_hold(tmp_path: Path, size: int) -> None:
    with pytest.raises(FormatError, match="one file of the commit log"):
        write(tmp_path / "store", [one_row(body=b"x" * size)], **SMALL)


def test_the_largest_record(tmp_path: Path) -> None:
    # Besides the body: a blank record, head and the rest, topic, record CRC.
    size = (1 << 16) - 8 - 91 - 1 - record_crc.SIZE
    write(tmp_path / "store", [one_row(body=b"x" * size)] * 3, **SMALL)
    assert [len(one.body) for one in read_log(tmp_path / "store")] == [size] * 3


def test_without_the_setting_records_state_no_crc(tmp_path: Path) -> None:
    rows = [one_row(properties={"a": "b", record_crc.NAME: "0"})]
    write(tmp_path / "store", rows, enabledAppendPropCRC=False)
    (found,) = read_log(tmp_path / "store")
    assert found.properties == {"a": "b"}


def test_texts_with_large_offsets(tmp_path: Path) -> None:
    """Spark sends them with spark.sql.execution.arrow.useLargeVarTypes."""
    text = pa.large_string()
    rows = pa.record_batch(
        {
            "topic": pa.array(["orders"], text),
            "body": pa.array([b"one"], pa.large_binary()),
            "keys": pa.array(["a b"], text),
            "properties": pa.array([[("TAGS", "paid")]], pa.map_(text, text)),
        }
    )
    lists = rows.set_column(2, "keys", pa.array([["a", "b"]], pa.large_list(text)))
    assert write(tmp_path / "store", [rows, lists]) == 2
    for found in read_log(tmp_path / "store"):
        assert (found.body, found.keys, found.tags) == (b"one", ["a", "b"], "paid")


def test_an_archive_is_no_target(tmp_path: Path) -> None:
    """Its manifest would name files that have other contents."""
    write(tmp_path / "store", [one_row()])
    check_target(tmp_path / "store")
    (tmp_path / "store" / "manifest.json").touch()
    with pytest.raises(StoreError, match="this is an archive"):
        check_target(tmp_path / "store")
