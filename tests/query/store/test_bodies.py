"""Rows are messages as consumers receive them, unless records as stored are requested."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mqlake
from mqlake.errors import StoreError
from mqlake.formats.batch_consume_queue import MOST_MESSAGES
from mqlake.formats.inner_batch import FLAGS
from mqlake.formats.message_batch import encode_batch
from mqlake.formats.sys_flag import COMPRESSED
from mqlake.protocol.messages.body_compression import compress
from mqlake.query.reading.conditions import AnyNumber, AnyText, HasKey
from tests.query.store.growing import Engine
from tests.query.store.mixed import BATCH, MixedStore
from tests.query.store.rows import Row, batch_rows, options_of
from tests.store.make_store import StoreMaker, write


@pytest.fixture(params=range(4))
def store(tmp_path: Path, request: pytest.FixtureRequest) -> MixedStore:
    return MixedStore(tmp_path / "store", request.param)


def received(rows: list[Row]) -> list[dict[str, Any]]:
    rows.sort(key=lambda row: row["queueOffset"])
    assert all(not row["sysFlag"] & (COMPRESSED | FLAGS) for row in rows)
    return [
        {name: row[name] for name in ("queueOffset", "body", "flag", "physicalOffset", "size")}
        | {"KEYS": row["keys"][0], "TAGS": row["tags"]}
        for row in rows
    ]


@pytest.mark.parametrize("partitions", [1, 5])
def test_rows_are_what_consumers_receive(store: MixedStore, partitions: int) -> None:
    assert received(batch_rows(store.path, minPartitions=partitions)) == store.sent


def test_records_as_stored(store: MixedStore) -> None:
    rows = batch_rows(store.path, decompress=False)
    assert len(rows) == 60
    assert any(row["sysFlag"] & COMPRESSED for row in rows)
    assert any(row["sysFlag"] & FLAGS == FLAGS for row in rows)


def test_each_message_of_a_batch_is_selected_by_itself(store: MixedStore) -> None:
    sent = store.sent
    wanted = sent[3]["KEYS"]
    assert received(batch_rows(store.path, keys=wanted)) == [sent[3]]
    tagged = [one for one in sent if one["TAGS"] == "tag-1"]
    assert received(batch_rows(store.path, tags="tag-1")) == tagged
    offsets = '{"T": {"0": %d}}'
    rows = batch_rows(store.path, startingOffsets=offsets % 7, endingOffsets=offsets % 23)
    assert received(rows) == sent[7:23]


def test_filters_that_spark_pushes_down(store: MixedStore) -> None:
    one = store.sent[len(store.sent) // 2]
    found = {
        "queueOffset": AnyNumber("queueOffset", (one["queueOffset"],)),
        "keys": HasKey((one["KEYS"],)),
    }
    for condition in found.values():
        assert received(batch_rows(store.path, (condition,))) == [one]
    whole = AnyNumber("physicalOffset", (one["physicalOffset"],))
    expected = [each for each in store.sent if each["physicalOffset"] == one["physicalOffset"]]
    assert received(batch_rows(store.path, (whole,))) == expected
    assert batch_rows(store.path, (AnyText("tags", ("none",)),)) == []


@pytest.mark.parametrize(
    "columns", ["body", "sysFlag", "body,sysFlag", "size", "queueOffset,keys", "msgId,body"]
)
def test_columns_do_not_depend_on_the_others(store: MixedStore, columns: str) -> None:
    whole = batch_rows(store.path, minPartitions=1)
    names = columns.split(",")
    expected = sorted((tuple(str(row[name]) for name in names) for row in whole), key=str)
    table = mqlake.open(store.path, columns=names)
    found = [
        tuple(str(row[name]) for name in names) for batch in table for row in batch.to_pylist()
    ]
    assert sorted(found, key=str) == expected


def test_streams_count_the_messages_of_batches(store: MixedStore) -> None:
    options = options_of(
        store.path, streaming=True, startingOffsets="earliest", maxOffsetsPerTrigger=20
    )
    engine = Engine(options)
    engine.run_all()
    rows = [row for batch in engine.sink.values() for row in batch]
    assert received(rows) == store.sent
    assert max(map(len, engine.sink.values())) <= 20 + BATCH


def test_a_batch_that_cannot_be_split_stays_a_record(tmp_path: Path) -> None:
    maker = StoreMaker(segment_size=1 << 20)
    maker.sys_flag = FLAGS
    maker.append(body=b"\0\0\0\xff no batch")
    maker.append(body=b"")
    write(maker.files(), tmp_path)
    rows = batch_rows(tmp_path)
    assert [row["body"] for row in rows] == [b"\0\0\0\xff no batch", b""]
    assert {row["sysFlag"] for row in rows} == {FLAGS}


@pytest.mark.parametrize("excess", [0, 1])
def test_a_batch_of_too_many_messages_stays_a_record(tmp_path: Path, excess: int) -> None:
    empty = encode_batch([(0, b"", b"")])
    body, bits = compress(empty * (MOST_MESSAGES + excess), "zlib", 9)
    maker = StoreMaker()
    maker.sys_flag = FLAGS | bits
    maker.append(body=body)
    write(maker.files(), tmp_path)
    rows = batch_rows(tmp_path, columns="physicalOffset,sysFlag")
    assert len(rows) == (1 if excess else MOST_MESSAGES)
    assert {row["sysFlag"] & FLAGS for row in rows} == {FLAGS if excess else 0}


def test_the_index_lacks_the_keys_in_batches_only(store: MixedStore) -> None:
    asked = {"keys": store.sent[3]["KEYS"], "accessPath": "index"}
    with pytest.raises(StoreError, match="topics of type BatchCQ"):
        batch_rows(store.path, **asked)
    assert batch_rows(store.path, **asked, subscribePattern="U.*", failOnDataLoss=False) == []
    stored = batch_rows(store.path, keys="key-none", accessPath="index", decompress=False)
    assert stored == []
