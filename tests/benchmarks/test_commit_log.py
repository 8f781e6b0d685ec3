from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from benchmarks.commit_log import QUEUES_EACH, TOPICS, key, write_commit_log

from mqlake.formats import record
from mqlake.formats.record import Fault, Record

SEGMENT_SIZE = 1 << 19


def _records(path: Path, base: int) -> list[Record]:
    data = path.read_bytes()
    found: list[Record] = []
    at = 0
    while True:
        fault, layout = record.check(data, at, len(data), base + at)
        if fault is Fault.BLANK:
            assert data[at:] == record.encode_blank(len(data) - at)
            return found
        assert fault is Fault.GOOD
        assert layout is not None
        found.append(record.decode(data, at))
        at += layout.size


@pytest.mark.parametrize("record_size", [256, 1024])
def test_every_record_is_good_and_every_queue_counts_up(tmp_path: Path, record_size: int) -> None:
    log = write_commit_log(
        tmp_path / "log", segment_size=SEGMENT_SIZE, segments=2, record_size=record_size
    )
    paths = sorted((tmp_path / "log").iterdir())
    assert [path.stat().st_size for path in paths] == [SEGMENT_SIZE] * 2
    records = [r for i, path in enumerate(paths) for r in _records(path, i * SEGMENT_SIZE)]
    assert len(records) == log.records
    assert [r.keys for r in records] == [[key(number)] for number in range(log.records)]
    assert len({r.unique_key for r in records}) == log.records
    assert {r.tags for r in records} == {"TagA"}
    assert sum(r.size for r in records) == record_size * log.records
    counts: Counter[tuple[str, int]] = Counter()
    for one in records:
        queue = one.topic, one.queue_id
        assert one.queue_offset == counts[queue]
        counts[queue] += 1
    assert set(counts.values()) == {log.records // (TOPICS * QUEUES_EACH)}
    assert len(counts) == TOPICS * QUEUES_EACH


def test_the_same_arguments_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "other"):
        write_commit_log(tmp_path / name, segment_size=SEGMENT_SIZE)
    one, other = (next((tmp_path / name).iterdir()).read_bytes() for name in ("one", "other"))
    assert one == other
