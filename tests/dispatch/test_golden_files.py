"""Queue and index files made from the log are, byte for byte, those that RocketMQ wrote."""

from __future__ import annotations

import numpy as np
import pytest

from mqlake.dispatch.derived.index_entries import IndexFileBuilder, lookup_many, relink
from mqlake.dispatch.derived.queue_entries import group
from mqlake.dispatch.kernel import Kernel
from mqlake.dispatch.scan import SegmentScan
from mqlake.formats import index_file
from mqlake.formats.consume_queue import ENTRY_SIZE
from mqlake.formats.dialect import Dialect
from mqlake.storage.local import LocalDirectory
from tests.golden import CLEAN, store

DIALECTS = {"rmq49-clean": Dialect.V4_9, "rmq533-clean": Dialect.V5_3}
SMALL_SIZE = index_file.file_size(1000, 4000)


@pytest.mark.parametrize("name", CLEAN)
def test_derived_files_equal_those_of_rocketmq(name: str, kernel: Kernel) -> None:
    directory = LocalDirectory(store(name).path)
    queues: dict[tuple[bytes, int], bytearray] = {}
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for segment in directory.names("commitlog"):
        file, base = directory.open(f"commitlog/{segment}"), int(segment)
        dialect = DIALECTS.get(name, Dialect.V5_5)
        for batch in SegmentScan(
            file, base, base, base + file.size, exact=True, dialect=dialect, kernel=kernel
        ):
            rows = batch.keys["record"]
            offsets, times = batch.records["physical_offset"], batch.records["store_timestamp"]
            parts.append((batch.keys["hash"].copy(), offsets[rows], times[rows]))
            entries, starts, queue_offsets = group(batch, kernel)
            assert len(entries) == ENTRY_SIZE * len(queue_offsets)
            for number, queue in enumerate(batch.table):
                first, last = int(starts[number]), int(starts[number + 1])
                data = queues.setdefault(queue, bytearray())
                assert queue_offsets[first:last].tolist() == list(
                    range(len(data) // ENTRY_SIZE, len(data) // ENTRY_SIZE + last - first)
                )
                data += entries[first * ENTRY_SIZE : last * ENTRY_SIZE].tobytes()
    assert_queue_files(directory, queues)
    assert_index_files(directory, parts, kernel)


def assert_queue_files(
    directory: LocalDirectory, queues: dict[tuple[bytes, int], bytearray]
) -> None:
    written = 0
    for topic in directory.names("consumequeue"):
        for queue_id in directory.names(f"consumequeue/{topic}"):
            path = f"consumequeue/{topic}/{queue_id}"
            files = [directory.open(f"{path}/{name}") for name in directory.names(path)]
            theirs = b"".join(file.read(0, file.size) for file in files)
            ours = queues[topic.encode(), int(queue_id)]
            assert theirs[: len(ours)] == ours
            assert not theirs[len(ours) :].strip(b"\0")
            written += 1
    assert written == len(queues)


def assert_index_files(
    directory: LocalDirectory,
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]],
    kernel: Kernel,
) -> None:
    hashes, offsets, times = (np.concatenate(column) for column in zip(*parts, strict=True))
    done, end_timestamp = 0, 0
    for name in directory.names("index"):
        file = directory.open(f"index/{name}")
        sizes = (1000, 4000) if file.size == SMALL_SIZE else (5_000_000, 20_000_000)
        builder = IndexFileBuilder(*sizes, previous_end_timestamp=end_timestamp, kernel=kernel)
        done += builder.insert(hashes[done:], offsets[done:], times[done:])
        theirs = file.view()
        with builder.finish() as ours:
            assert ours[: builder.used_bytes] == theirs[: builder.used_bytes]
        assert not theirs[builder.used_bytes : builder.used_bytes + 4096].tobytes().strip(b"\0")
        if sizes[0] == 1000:
            assert_looked_up(theirs, sizes, hashes, kernel)
            relinked = relink(theirs, sizes[0], builder.header.index_count, kernel)
            assert relinked == (builder.header.slot_count, 0, 0, 0, -1)
        end_timestamp = builder.header.end_timestamp
        builder.close()
    assert done == len(hashes)


def assert_looked_up(
    buffer: memoryview, sizes: tuple[int, int], hashes: np.ndarray, kernel: Kernel
) -> None:
    wanted = np.unique(hashes)[::7]
    offsets, starts = lookup_many(buffer, *sizes, wanted, 0, 1 << 62, 5, kernel)
    for row, key_hash in enumerate(wanted.tolist()):
        expected = [
            entry.physical_offset
            for entry in index_file.walk_slot(buffer, *sizes, key_hash)
            if entry.key_hash == key_hash
        ]
        assert offsets[starts[row] : starts[row + 1]].tolist() == expected[:5]
