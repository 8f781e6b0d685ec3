"""Every batch and record of the golden logs, against what Kafka's own classes and consumer saw."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlake.formats.kafka import control_record, versions
from mqlake.formats.kafka.batch import Batch
from tests import golden_kafka
from tests.formats.kafka.consumed import as_consumed, encoded
from tests.golden_kafka import GoldenPartition

# Deleted by request up to offset 333, in the middle of a batch that is still there.
LOG_START = {"delete-records-0": 333}


def batches(path: Path) -> Iterator[tuple[Batch, bytes]]:
    data = path.read_bytes()
    at = 0
    while (batch := versions.read_header(data, at, at, len(data))) is not None:
        content = data[at : batch.end]
        versions.check(batch, content)
        yield batch, content
        at = batch.end
    assert len(data) == at


@pytest.mark.parametrize("name", golden_kafka.partitions())
def test_fields_of_every_batch(name: str) -> None:
    partition = GoldenPartition(name)
    found = [
        {
            "segment": path.stem,
            "size": path.stat().st_size,
            "batches": list(map(fields, batches(path))),
        }
        for path in partition.logs
    ]
    assert partition.truth("batches.json") == found


def fields(item: tuple[Batch, bytes]) -> dict[str, Any]:
    batch, data = item
    kind = None
    if batch.is_control:
        # Kafka's own answer is that of the last record.
        for record in versions.decode_records(batch, data):
            kind = control_record.control_type(record).name
    return {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "position": batch.position,
        "sizeInBytes": batch.size,
        "crc": batch.crc,
        "isValid": True,
        "magic": batch.magic,
        "compression": batch.compression.name.lower(),
        "timestampType": batch.timestamp_type,
        "baseTimestamp": batch.base_timestamp,
        "maxTimestamp": batch.max_timestamp,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "count": batch.record_count,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "controlType": kind,
        "deleteHorizonMs": batch.delete_horizon,
        "partitionLeaderEpoch": batch.leader_epoch,
    }


@pytest.mark.parametrize("name", golden_kafka.partitions(consumed=True))
def test_every_record(name: str) -> None:
    partition = GoldenPartition(name)
    found = [
        as_consumed(record)
        for path in partition.logs
        for batch, data in batches(path)
        for record in versions.decode_records(batch, data)
        if not record.is_control and record.offset >= LOG_START.get(name, 0)
    ]
    assert partition.records() == found


@pytest.mark.parametrize("name", golden_kafka.LEGACY)
def test_every_message_of_versions_0_and_1(name: str) -> None:
    directory = golden_kafka.legacy(name)
    [path] = directory.glob("*.log")
    found_batches: list[dict[str, Any]] = []
    found: list[dict[str, Any]] = []
    for batch, data in batches(path):
        records = versions.decode_records(batch, data)
        known = versions.knows_first_offset(batch)
        found_batches.append(
            {
                "position": batch.position,
                "sizeInBytes": batch.size,
                "magic": batch.magic,
                "baseOffset": batch.base_offset if known else records[0].offset,
                "lastOffset": batch.last_offset,
                "crc": batch.crc,
                "isValid": True,
                "compression": batch.compression.name.lower(),
                "timestampType": batch.timestamp_type,
                "maxTimestamp": batch.max_timestamp,
            }
        )
        found += [
            {
                "offset": record.offset,
                "timestamp": record.timestamp,
                "key": encoded(record.key),
                "value": encoded(record.value),
            }
            for record in records
        ]
    assert json.loads((directory / "batches.json").read_text()) == found_batches
    assert golden_kafka.json_lines(directory / "records.jsonl") == found
