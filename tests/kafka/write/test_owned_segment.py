from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.errors import FormatError, StoreError
from mqlake.formats.kafka import record_batch
from mqlake.formats.kafka.record_batch import NewRecord
from mqlake.kafka.errors import OffsetOverflowError
from mqlake.kafka.log.segment import LogSegment
from mqlake.kafka.settings import LogSettings
from mqlake.kafka.state.leader_epochs import LeaderEpochs
from mqlake.kafka.state.producer_state import ProducerState
from mqlake.kafka.write.owned_segment import OwnedSegment
from mqlake.storage.local import LocalDirectory
from mqlake.storage.local_owned import LocalOwnedDirectory
from tests import golden_kafka
from tests.golden_kafka import GoldenPartition

SMALL = LogSettings(index_interval_bytes=100, segment_index_bytes=1200, segment_bytes=5000)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000

    def milliseconds(self) -> int:
        return self.now

    def monotonic(self) -> float:
        return self.now / 1000


def batch(first: int, count: int = 2, timestamp: int = 500, size: int = 20) -> bytes:
    return record_batch.encode(
        first, [NewRecord(timestamp + n, b"key", bytes(size)) for n in range(count)]
    )


def filled(path: Path, settings: LogSettings = SMALL) -> OwnedSegment:
    segment = OwnedSegment(LocalOwnedDirectory(path), "", 100, settings)
    for number in range(10):
        segment.append(batch(100 + 2 * number, timestamp=500 + 10 * number))
    return segment


@pytest.mark.parametrize("name", golden_kafka.partitions())
def test_appending_indexes_as_kafka_does(name: str, tmp_path: Path) -> None:
    partition = GoldenPartition(name)
    settings = LogSettings(index_interval_bytes=partition.index_interval)
    for log, truth in zip(partition.logs, partition.truth("batches.json"), strict=True):
        data = log.read_bytes()
        segment = OwnedSegment(LocalOwnedDirectory(tmp_path), "", int(log.stem), settings)
        for item in truth["batches"]:
            segment.append(data[item["position"] : item["position"] + item["sizeInBytes"]])
        segment.close()
        assert data == (tmp_path / log.name).read_bytes()
        for suffix in (".index", ".timeindex"):
            written = (tmp_path / log.name).with_suffix(suffix).read_bytes()
            expected = (partition.recovered() / log.name).with_suffix(suffix).read_bytes()
            assert expected == written


def test_files_are_large_while_written_and_cut_at_the_end(tmp_path: Path) -> None:
    segment = filled(tmp_path, LogSettings(preallocate=True, segment_bytes=4096))
    sizes = {path.suffix: path.stat().st_size for path in tmp_path.iterdir()}
    assert sizes == {".log": 4096, ".index": 10485760, ".timeindex": 10485756}
    used = segment.size
    reader = LogSegment.read(LocalDirectory(tmp_path), "", 100)
    assert (reader.next_offset(), reader.size) == (120, 4096)
    assert reader.is_unwritten(used)
    segment.close()
    sizes = {path.suffix: path.stat().st_size for path in tmp_path.iterdir()}
    assert {".log": used, ".index": 0, ".timeindex": 12} == sizes


def test_truncation_drops_the_batch_that_holds_the_offset(tmp_path: Path) -> None:
    segment = filled(tmp_path)
    before = segment.size
    assert 5 * before // 10 == segment.truncate_to(111)
    assert segment.next_offset() == 110
    assert before // 2 == segment.size
    segment.append(batch(110, timestamp=999))
    assert segment.next_offset() == 112
    segment.close()

    recovered = OwnedSegment(LocalOwnedDirectory(tmp_path), "", 100, SMALL)
    assert recovered.largest_timestamp() == 1000
    assert recovered.recover(ProducerState(), LeaderEpochs()) == 0
    recovered.close()


def test_truncation_beyond_the_end_does_nothing(tmp_path: Path) -> None:
    segment = filled(tmp_path)
    entries = segment.offset_index.entries
    assert segment.truncate_to(120) == 0
    assert (entries, 120) == (segment.offset_index.entries, segment.next_offset())
    segment.close()


def test_truncation_of_everything(tmp_path: Path) -> None:
    segment = filled(tmp_path)
    assert segment.size == segment.truncate_to(0)
    assert (segment.size, segment.offset_index.entries, segment.next_offset()) == (0, 0, 100)
    segment.close()


def test_a_torn_tail_is_cut(tmp_path: Path) -> None:
    segment = filled(tmp_path)
    size = segment.size
    segment.close()
    log = tmp_path / "00000000000000000100.log"
    log.write_bytes(log.read_bytes() + batch(120)[:50])
    segment = OwnedSegment(LocalOwnedDirectory(tmp_path), "", 100, SMALL)
    assert segment.recover(ProducerState(), LeaderEpochs()) == 50
    assert size == segment.size
    segment.close()


def test_rolling_by_size(tmp_path: Path) -> None:
    segment = filled(tmp_path)
    room = SMALL.segment_bytes - segment.size
    assert not segment.should_roll(room, 0, 120)
    assert segment.should_roll(room + 1, 0, 120)
    segment.close()


def test_rolling_by_time_of_the_first_batch(tmp_path: Path) -> None:
    segment = filled(tmp_path, LogSettings(segment_ms=1000, segment_jitter_ms=100))
    first = 501
    assert not segment.should_roll(10, first + 900, 120)
    assert segment.should_roll(10, first + 901, 120)
    segment.close()


def test_rolling_by_the_clock_where_there_are_no_times(tmp_path: Path) -> None:
    clock = Clock()
    segment = OwnedSegment(
        LocalOwnedDirectory(tmp_path), "", 0, LogSettings(segment_ms=1000), clock
    )
    clock.now += 5000
    # An empty segment does not roll for its age.
    assert not segment.should_roll(10, -1, 0)
    segment.append(batch(0, count=1, timestamp=-1))
    assert segment.should_roll(10, -1, 1)
    clock.now -= 4500
    assert not segment.should_roll(10, -1, 1)
    segment.close()


def test_rolling_when_an_index_is_full(tmp_path: Path) -> None:
    settings = LogSettings(index_interval_bytes=0, segment_index_bytes=24)
    segment = OwnedSegment(LocalOwnedDirectory(tmp_path), "", 0, settings)
    segment.append(batch(0))
    assert not segment.should_roll(10, 0, 2)
    segment.append(batch(2, timestamp=600))
    # One place of two is left, and that is for closing.
    assert segment.should_roll(10, 0, 4)
    segment.close()


def test_rolling_by_offset(tmp_path: Path) -> None:
    segment = filled(tmp_path)
    assert not segment.should_roll(10, 0, 100 + (1 << 31) - 1)
    assert segment.should_roll(10, 0, 100 + (1 << 31))
    with pytest.raises(OffsetOverflowError):
        segment.append(batch(100 + (1 << 31)))
    segment.close()


@pytest.mark.parametrize("data", [b"x" * 70, batch(120)[:-1], batch(120) + b"abc"])
def test_invalid_batches_are_not_written(tmp_path: Path, data: bytes) -> None:
    segment = filled(tmp_path)
    size = segment.size
    with pytest.raises(FormatError):
        segment.append(data)
    assert size == segment.size
    segment.close()


def test_fetching(tmp_path: Path) -> None:
    segment = filled(tmp_path)
    whole = (tmp_path / "00000000000000000100.log").read_bytes()
    each = segment.size // 10
    found = segment.fetch(105, 10 * each)
    assert found is not None
    assert (104, 2 * each, each) == found.place
    assert whole[2 * each :] == found.data
    found = segment.fetch(105, 10, end=3 * each)
    assert found is not None
    assert whole[2 * each : 2 * each + 10] == found.data
    found = segment.fetch(105, 10, at_least_one=True)
    assert found is not None
    assert whole[2 * each : 3 * each] == found.data
    assert segment.fetch(120, 10) is None
    segment.close()


def test_a_log_larger_than_positions_can_say(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    with path.open("wb") as file:
        file.truncate(1 << 31)
    with pytest.raises(StoreError, match="maximum of a segment is 2147483647"):
        OwnedSegment(LocalOwnedDirectory(tmp_path), "", 0, SMALL)


def test_a_segment_without_a_log(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        LogSegment.read(LocalDirectory(tmp_path), "", 7)
