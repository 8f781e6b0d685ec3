"""Every look-up that Kafka's own classes answered on the golden index files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mqlake.kafka.log.segment import LogSegment
from mqlake.storage.local import LocalDirectory
from tests import golden_kafka
from tests.golden_kafka import GoldenPartition


def segment(path: Path, base_offset: int) -> LogSegment:
    return LogSegment.read(LocalDirectory(path), "", base_offset)


def listed(answer: tuple[int, ...] | None) -> list[int] | None:
    return None if answer is None else list(answer)


@pytest.mark.parametrize("name", golden_kafka.partitions())
def test_by_offset(name: str) -> None:
    partition = GoldenPartition(name)
    for truth in partition.truth("lookups.json"):
        found = segment(partition.path, int(truth["segment"]))
        for case in truth["offset"]:
            entry = found.offset_index.lookup(case["target"])
            assert case == {
                "target": case["target"],
                "lookup": list(entry),
                "translateOffset": listed(found.translate_offset(case["target"])),
                "fetchUpperBoundOffset8192": listed(found.offset_index.upper_bound(entry, 8192)),
            }


@pytest.mark.parametrize("name", golden_kafka.partitions())
def test_by_time(name: str) -> None:
    partition = GoldenPartition(name)
    for truth in partition.truth("lookups.json"):
        found = segment(partition.path, int(truth["segment"]))
        for case in truth["time"]:
            start = case["startingOffset"]
            assert case == {
                "target": case["target"],
                "lookup": list(found.time_index.lookup(case["target"])),
                "startingOffset": start,
                "findOffsetByTimestamp": listed(
                    found.find_offset_by_timestamp(case["target"], start)
                ),
            }


@pytest.mark.parametrize("name", golden_kafka.partitions())
def test_next_offset_and_largest_timestamp_of_a_segment(name: str) -> None:
    partition = GoldenPartition(name)
    for truth in partition.truth("index.json"):
        found = segment(partition.path, int(truth["segment"]))
        found.sanity_check()
        assert truth["readNextOffset"] == found.next_offset()
        assert truth["largestRecordTimestamp"] == found.largest_timestamp()


@pytest.mark.parametrize("name", golden_kafka.LEGACY)
def test_versions_0_and_1(name: str) -> None:
    path = golden_kafka.legacy(name)
    truth: dict[str, Any] = json.loads((path / "lookups.json").read_text())
    [log] = path.glob("*.log")
    found = segment(path, int(log.stem))
    assert truth["nextOffset"] == found.next_offset()
    for offset, place in truth["offset"]:
        assert place == listed(found.translate_offset(offset))
    for timestamp, start, record in truth["time"]:
        assert record == listed(found.find_offset_by_timestamp(timestamp, start))


@pytest.mark.parametrize("name", golden_kafka.partitions(consumed=True))
def test_answers_do_not_depend_on_the_indexes(name: str, tmp_path: Path) -> None:
    partition = GoldenPartition(name)
    for log in partition.logs:
        (tmp_path / log.name).write_bytes(log.read_bytes())
        # An offset index that points into the middle of batches.
        data = bytearray(log.with_suffix(".index").read_bytes())
        for at in range(7, len(data), 8):
            data[at] ^= 1
        (tmp_path / log.with_suffix(".index").name).write_bytes(data)
    for truth in partition.truth("lookups.json"):
        found = segment(tmp_path, int(truth["segment"]))
        for case in truth["offset"]:
            assert case["translateOffset"] == listed(found.translate_offset(case["target"]))
        for case in truth["time"]:
            assert case["findOffsetByTimestamp"] == listed(
                found.find_offset_by_timestamp(case["target"], case["startingOffset"])
            )
