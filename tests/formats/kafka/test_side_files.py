"""Index entries, snapshots, checkpoints and metadata: the golden files both ways, and bad ones."""

from __future__ import annotations

import uuid

import pytest

from mqlake.errors import FormatError
from mqlake.formats.kafka import (
    checkpoint_file,
    offset_index,
    partition_metadata,
    producer_snapshot,
    time_index,
    transaction_index,
)
from mqlake.formats.kafka.checkpoint_file import LeaderEpoch
from tests import golden_kafka
from tests.golden_kafka import GoldenPartition


@pytest.mark.parametrize("name", golden_kafka.partitions())
def test_index_entries(name: str) -> None:
    partition = GoldenPartition(name)
    for segment in partition.truth("index.json"):
        base, path = int(segment["segment"]), partition.path / segment["segment"]
        data = path.with_suffix(".index").read_bytes()
        offsets = [
            offset_index.decode_entry(data, base, number)
            for number in range(len(data) // offset_index.ENTRY_SIZE)
        ]
        assert segment["indexEntries"] == [list(entry) for entry in offsets]
        assert data == b"".join(offset_index.encode_entry(base, entry) for entry in offsets)

        data = path.with_suffix(".timeindex").read_bytes()
        times = [
            time_index.decode_entry(data, base, number)
            for number in range(len(data) // time_index.ENTRY_SIZE)
        ]
        assert segment["timeIndexEntries"] == [list(entry) for entry in times]
        assert data == b"".join(time_index.encode_entry(base, entry) for entry in times)

        aborted = path.with_suffix(".txnindex")
        data = aborted.read_bytes() if aborted.exists() else b""
        entries = transaction_index.decode(data)
        assert [
            {
                "producerId": entry.producer_id,
                "firstOffset": entry.first_offset,
                "lastOffset": entry.last_offset,
                "lastStableOffset": entry.last_stable_offset,
            }
            for entry in entries
        ] == segment["abortedTxns"]
        assert data == b"".join(map(transaction_index.encode_entry, entries))


def test_a_cut_transaction_index_loses_its_last_entry_only() -> None:
    data = bytes(transaction_index.ENTRY_SIZE) * 2
    assert len(transaction_index.decode(data[:-1])) == 1


def test_a_later_transaction_index() -> None:
    with pytest.raises(FormatError, match="version 1"):
        transaction_index.decode(b"\0\1" + bytes(32))


def test_snapshots() -> None:
    paths = sorted(golden_kafka.log_directory().glob("*-*/*.snapshot"))
    producers = 0
    for path in paths:
        data = path.read_bytes()
        entries = producer_snapshot.decode(data)
        assert data == producer_snapshot.encode(entries)
        producers += len(entries)
    assert len(paths) > 50
    assert producers > 20


def test_every_change_of_a_snapshot_is_seen() -> None:
    data = (GoldenPartition("txn-open-0").path / "00000000000000000148.snapshot").read_bytes()
    for at in range(len(data)):
        with pytest.raises(FormatError):
            producer_snapshot.decode(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(FormatError):
            producer_snapshot.decode(data[:at])


def test_a_snapshot_that_says_too_many() -> None:
    from struct import pack

    from mqlake.formats.kafka.crc32c import crc32c

    body = pack(">i", 1 << 30)
    with pytest.raises(FormatError, match="producers in a snapshot"):
        producer_snapshot.decode(pack(">hI", 1, crc32c(body)) + body)


def test_leader_epochs() -> None:
    data = (GoldenPartition("txn-0").path / checkpoint_file.LEADER_EPOCHS).read_bytes()
    entries = checkpoint_file.decode_leader_epochs(data)
    assert [LeaderEpoch(0, 0), LeaderEpoch(4, 901)] == entries
    assert data == checkpoint_file.encode_leader_epochs(entries)


@pytest.mark.parametrize(
    "name",
    [
        checkpoint_file.RECOVERY_POINTS,
        checkpoint_file.LOG_START_OFFSETS,
        checkpoint_file.HIGH_WATERMARKS,
        checkpoint_file.CLEANED_OFFSETS,
    ],
)
def test_offset_checkpoints(name: str) -> None:
    data = (golden_kafka.log_directory() / name).read_bytes()
    offsets = checkpoint_file.decode_offsets(data)
    assert data == checkpoint_file.encode_offsets(offsets)
    if name == checkpoint_file.LOG_START_OFFSETS:
        assert offsets == {("delete-records", 0): 333}


@pytest.mark.parametrize(
    "data",
    [
        b"0\n",
        b"1\n0\n",
        b"0\n1\n",
        b"0\n1\na 0\n",
        b"0\n1\na 0 x\n",
        b"0\n1\na 0 1 2\n",
        b"0\n99999999999999999999999\n",
        b"\xff\n0\n",
        "0\n1\na 0 ²\n".encode(),
    ],
)
def test_no_checkpoint(data: bytes) -> None:
    with pytest.raises(FormatError):
        checkpoint_file.decode_offsets(data)


def test_a_checkpoint_that_kafka_has_just_made_is_empty() -> None:
    assert checkpoint_file.decode_offsets(b"") == {}
    assert checkpoint_file.decode_leader_epochs(b"") == []


@pytest.mark.parametrize("name", golden_kafka.partitions())
def test_partition_metadata(name: str) -> None:
    partition = GoldenPartition(name)
    data = (partition.path / partition_metadata.NAME).read_bytes()
    metadata = partition_metadata.decode(data)
    assert data == partition_metadata.encode(metadata)
    text = partition_metadata.encode_topic_id(metadata.topic_id)
    assert len(text) == 22
    assert metadata.topic_id == partition_metadata.decode_topic_id(text)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"version: 0\n",
        b"version: x\ntopic_id: vyLzGYxQSzyYPbyUa_0a0A",
        b"version: 0\ntopic_id: vyLzGYxQSzyYPbyUa",
        b"version: 0\ntopic_id: vyLzGYxQSzyYPbyUa+0a0A",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"\xff\xfe",
    ],
)
def test_no_partition_metadata(data: bytes) -> None:
    with pytest.raises(FormatError):
        partition_metadata.decode(data)


def test_topic_ids() -> None:
    assert partition_metadata.encode_topic_id(uuid.UUID(int=1)) == "AAAAAAAAAAAAAAAAAAAAAQ"
