"""Recovery of the golden logs, whole and damaged, beside what Kafka's own made of them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from mqlake.errors import StoreError
from mqlake.formats.kafka import checkpoint_file
from mqlake.kafka.errors import InvalidOffsetError, OffsetOverflowError
from mqlake.kafka.settings import LogSettings
from mqlake.kafka.state.leader_epochs import LeaderEpochs
from mqlake.kafka.state.producer_state import ProducerState
from mqlake.kafka.write.owned_segment import OwnedSegment
from mqlake.storage.local_owned import LocalOwnedDirectory
from tests import golden_kafka
from tests.golden_kafka import GoldenPartition

pytestmark = pytest.mark.usefixtures("kernel")

# The largest index that a case writes has 4 KiB; Kafka's 10 MiB only take time.
INDEX_BYTES = 64 << 10

ERRORS = {
    "LogSegmentOffsetOverflowException": OffsetOverflowError,
    "InvalidOffsetException": InvalidOffsetError,
}


def settings(interval: int) -> LogSettings:
    return LogSettings(index_interval_bytes=interval, segment_index_bytes=INDEX_BYTES)


def opened(log: Path, directory: Path, interval: int) -> OwnedSegment:
    place = LocalOwnedDirectory(directory)
    return OwnedSegment(place, "", int(log.stem), settings(interval))


@pytest.mark.parametrize("name", golden_kafka.partitions())
def test_indexes_are_made_as_kafka_makes_them(name: str, tmp_path: Path) -> None:
    partition = GoldenPartition(name)
    for log in partition.logs:
        (tmp_path / log.name).write_bytes(log.read_bytes())
    producers, epochs = ProducerState(), LeaderEpochs()
    for log, truth in zip(partition.logs, partition.truth("recover.json"), strict=True):
        segment = OwnedSegment(
            LocalOwnedDirectory(tmp_path), "", int(log.stem), settings(partition.index_interval)
        )
        cut = segment.recover(producers, epochs)
        assert (truth["truncatedBytes"], truth["validBytes"]) == (cut, segment.size)
        segment.close()
    for path in sorted(partition.recovered().iterdir()):
        expected = path.read_bytes()
        if path.name == checkpoint_file.LEADER_EPOCHS:
            # Kafka writes no file until it knows of an epoch.
            entries = checkpoint_file.decode_leader_epochs(expected) if expected else []
            assert entries == epochs.entries
        else:
            assert expected == (tmp_path / path.name).read_bytes(), path.name
    assert not list(tmp_path.glob("*.txnindex")) or list(partition.recovered().glob("*.txnindex"))


@pytest.mark.parametrize("name", golden_kafka.LEGACY)
def test_indexes_of_versions_0_and_1(name: str, tmp_path: Path) -> None:
    source = golden_kafka.legacy(name)
    [log] = source.glob("*.log")
    (tmp_path / log.name).write_bytes(log.read_bytes())
    segment = OwnedSegment(
        LocalOwnedDirectory(tmp_path),
        "",
        int(log.stem),
        settings(golden_kafka.LEGACY_INDEX_INTERVAL),
    )
    assert segment.recover(ProducerState(), LeaderEpochs()) == 0
    segment.close()
    for suffix in (".index", ".timeindex"):
        written = (tmp_path / log.name).with_suffix(suffix)
        assert log.with_suffix(suffix).read_bytes() == written.read_bytes()


def edited(data: bytes, edits: list[list[Any]]) -> bytes:
    out = bytearray(data)
    for kind, *arguments in edits:
        if kind == "xor":
            out[arguments[0]] ^= arguments[1]
        elif kind == "set":
            new = bytes.fromhex(arguments[1])
            out[arguments[0] : arguments[0] + len(new)] = new
        elif kind == "truncate":
            del out[arguments[0] :]
        else:
            out += bytes.fromhex(arguments[0])
    return bytes(out)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def recovered(log: Path, interval: int) -> dict[str, Any]:
    size = log.stat().st_size
    segment = opened(log, log.parent, interval)
    try:
        cut = segment.recover(ProducerState(), LeaderEpochs())
    except StoreError:
        segment.abandon()
        raise
    following, valid = segment.next_offset(), segment.size
    segment.close()
    index, times = log.with_suffix(".index"), log.with_suffix(".timeindex")
    return {
        "sizeBefore": size,
        "truncatedBytes": cut,
        "validBytes": valid,
        "nextOffset": following,
        "indexBytes": index.stat().st_size,
        "timeIndexBytes": times.stat().st_size,
        "indexSha256": digest(index),
        "timeIndexSha256": digest(times),
        "logSha256": digest(log),
    }


def test_damaged_logs_are_cut_where_kafka_cuts_them(tmp_path: Path) -> None:
    cases = golden_kafka.corrupt_cases()
    assert len(cases) == 560
    for number, case in enumerate(cases):
        partition = GoldenPartition(case["partition"])
        log = tmp_path / str(number) / f"{case['segment']}.log"
        log.parent.mkdir()
        log.write_bytes(edited((partition.path / log.name).read_bytes(), case["edits"]))
        truth = case["result"]
        if "exception" in truth:
            name = truth["exception"].split(":")[0].rsplit(".", 1)[1]
            with pytest.raises(ERRORS[name]):
                recovered(log, partition.index_interval)
        else:
            label = (case["partition"], case["variant"])
            assert (label, truth) == (label, recovered(log, partition.index_interval))
