"""A digest of a few records is what a scan of them finds."""

from __future__ import annotations

import random

import numpy as np
import pytest

from mqlake.dispatch.batch import Batch
from mqlake.dispatch.derived import queue_entries
from mqlake.dispatch.digest import MOST_BYTES, MOST_RECORDS, Digester, load_digester
from mqlake.dispatch.kernel import is_compiled
from mqlake.dispatch.queue_table import QueueTable
from mqlake.dispatch.scan import SegmentScan
from mqlake.formats import record, sys_flag
from mqlake.storage.memory import MemoryFile

pytestmark = pytest.mark.skipif(not is_compiled(), reason="only compiled kernels digest")

BASE = 1 << 40
FREE = 4096
FLAGS = (0, 0, 0, sys_flag.TRANSACTION_PREPARED, sys_flag.TRANSACTION_ROLLBACK)


@pytest.fixture(scope="module")
def digester() -> Digester:
    made = load_digester(np.array([1000], np.int64), index_tags=True)
    assert made is not None
    return made


def log_of(count: int, seed: int) -> bytes:
    """Return records of a few queues, most with consecutive queue offsets."""
    dice, data = random.Random(seed), bytearray()
    offsets: dict[tuple[str, int], int] = {}
    for number in range(count):
        queue = topic, queue_id = f"topic-{dice.randrange(3)}", dice.randrange(3)
        offsets[queue] = offsets.get(queue, 0) + (1 if dice.random() < 0.9 else 3)
        data += record.encode(
            physical_offset=BASE + len(data),
            topic=topic,
            queue_id=queue_id,
            queue_offset=offsets[queue],
            store_timestamp=1_800_000_000_000 + number,
            body=dice.randbytes(dice.randrange(200)),
            sys_flag=dice.choice(FLAGS),
            properties=dice.choice(
                [{}, {"TAGS": "a"}, {"KEYS": "k1 k2"}, {"UNIQ_KEY": "u", "KEYS": "k"}]
            ),
        )
    return bytes(data)


def file_of(data: bytes) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.frombuffer(bytearray(data + bytes(FREE)), np.uint8)


def scanned(data: bytes) -> Batch:
    file = MemoryFile(data)
    return next(iter(SegmentScan(file, BASE, BASE, BASE + len(data), exact=True)))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("count", [1, 2, 9, MOST_RECORDS])
def test_a_digest_is_what_a_scan_finds(digester: Digester, count: int, seed: int) -> None:
    data = log_of(count, seed)
    batch, table = scanned(data), QueueTable()
    entries, _, offsets = queue_entries.group(batch)

    found = digester.digest(file_of(data), BASE, BASE, BASE + len(data), table)

    assert found is not None
    assert found.rows == count == len(batch.records)
    assert list(table) == list(batch.table)
    assert digester.entries[: len(entries)].tobytes() == entries.tobytes()
    told = [offset + place for _, start, end, offset in found.runs for place in range(end - start)]
    assert told == offsets.tolist()
    assert [start for _, start, _, _ in found.runs[1:]] == [end for _, _, end, _ in found.runs[:-1]]
    owners = batch.keys["record"]
    assert digester.hashes[: found.keys].tolist() == batch.keys["hash"].tolist()
    for column, filled in (
        ("physical_offset", digester.offsets),
        ("store_timestamp", digester.times),
    ):
        assert filled[: found.keys].tolist() == batch.records[column][owners].tolist()
    ends = ["physical_offset", "store_timestamp"]
    assert found.ends_with_key == bool(batch.records[-1]["key_count"])
    assert found.last == batch.records[-1][ends].item()
    if found.runs:
        queued = batch.records[batch.records["queue"] >= 0][-1]
        assert found.last_queued == queued[ends].item()


def test_unusual_records_are_left_to_a_scan(digester: Digester) -> None:
    data, table = log_of(3, 0), QueueTable()
    end = BASE + len(data)
    assert digester.digest(file_of(data), BASE, BASE, end, table)
    assert digester.digest(file_of(data), BASE, BASE, end - 1, table) is None
    assert digester.digest(file_of(data), BASE, BASE, end + 1, table) is None
    assert digester.digest(file_of(data), BASE, BASE + 1, end, table) is None
    assert digester.digest(file_of(data), BASE, BASE - 1, end, table) is None
    assert digester.digest(file_of(data)[: len(data)], BASE, BASE, end, table) is None
    assert digester.digest(file_of(data), BASE, end, end, table) is None
    assert digester.digest(file_of(data), BASE, end, BASE, table) is None
    many = log_of(MOST_RECORDS + 1, 0)
    assert digester.digest(file_of(many), BASE, BASE, BASE + len(many), table) is None
    large = record.encode(physical_offset=BASE, topic="T", body=bytes(MOST_BYTES))
    assert digester.digest(file_of(large), BASE, BASE, BASE + len(large), table) is None
