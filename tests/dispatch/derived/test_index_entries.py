from __future__ import annotations

import random

import numpy as np
import pytest

from mqlake.dispatch.derived.index_entries import IndexFileBuilder, Relinked, lookup_many, relink
from mqlake.dispatch.kernel import Kernel, load
from mqlake.errors import FormatError
from mqlake.formats import index_file
from mqlake.formats.index_file import IndexEntry, IndexHeader

BEGIN = 1_700_000_000_000


def inserted(builder: IndexFileBuilder, hashes: list[int], first: int = 0, step: int = 1000) -> int:
    count = len(hashes)
    offsets = np.arange(first, first + count, dtype=np.int64) * 100
    times = BEGIN + step * np.arange(first, first + count, dtype=np.int64)
    return builder.insert(np.array(hashes, np.int32), offsets, times)


def finished(builder: IndexFileBuilder) -> bytes:
    with builder.finish() as view:
        data = bytes(view)
    builder.close()
    return data


def test_entries_are_chained(kernel: Kernel) -> None:
    builder = IndexFileBuilder(5, 10, kernel=kernel)
    assert inserted(builder, [7, 2, 3]) == 3
    data = finished(builder)
    assert index_file.decode_header(data) == IndexHeader(BEGIN, BEGIN + 2000, 0, 200, 2, 4)
    assert [index_file.decode_entry(data, 5, number) for number in (1, 2, 3)] == [
        IndexEntry(7, 0, 0, 0),
        IndexEntry(2, 100, 1, 1),
        IndexEntry(3, 200, 2, 0),
    ]


def test_parts_are_like_the_whole(kernel: Kernel) -> None:
    chance = random.Random(1)
    hashes = [chance.randrange(50) for _ in range(300)]
    whole = IndexFileBuilder(20, 400, kernel=kernel)
    parts = IndexFileBuilder(20, 400, kernel=kernel)
    inserted(whole, hashes)
    at = 0
    while at < 300:
        count = chance.randrange(40)
        inserted(parts, hashes[at : at + count], at)
        at += len(hashes[at : at + count])
    assert finished(whole) == finished(parts)


def test_full_file_takes_no_more(kernel: Kernel) -> None:
    builder = IndexFileBuilder(5, 4, kernel=kernel)
    assert builder.room == 3
    assert inserted(builder, [1, 2, 3, 4, 5]) == 3
    assert inserted(builder, [6]) == 0
    assert builder.header.index_count == 4
    assert builder.used_bytes == index_file.file_size(5, 4)
    builder.close()


def test_first_entry_counts_from_the_file_before(kernel: Kernel) -> None:
    """RocketMQ computes the first entry's seconds before it overwrites the begin timestamp."""
    builder = IndexFileBuilder(5, 4, previous_end_timestamp=BEGIN - 7500, kernel=kernel)
    inserted(builder, [1, 2])
    data = finished(builder)
    assert index_file.decode_entry(data, 5, 1).seconds == 7
    assert index_file.decode_entry(data, 5, 2).seconds == 1
    assert index_file.decode_header(data).begin_timestamp == BEGIN


@pytest.mark.parametrize("step", [-1000, 1 << 42, 999, 0])
def test_seconds_are_clamped(step: int, kernel: Kernel) -> None:
    builder = IndexFileBuilder(5, 4, kernel=kernel)
    inserted(builder, [1, 2], step=step)
    seconds = index_file.decode_entry(finished(builder), 5, 2).seconds
    assert seconds == index_file.seconds_since(BEGIN, BEGIN + step)


@pytest.mark.parametrize("sizes", [(0, 10), (10, 1), (1, 1 << 30)])
def test_impossible_sizes_are_refused(sizes: tuple[int, int], kernel: Kernel) -> None:
    with pytest.raises(FormatError, match="an index file cannot have"):
        IndexFileBuilder(*sizes, kernel=kernel)


def built(kernel: Kernel, hashes: list[int], slots: int = 7, step: int = 1000) -> bytes:
    builder = IndexFileBuilder(slots, 1000, kernel=kernel)
    inserted(builder, hashes, step=step)
    return finished(builder)


def looked_up(
    kernel: Kernel,
    data: bytes,
    hashes: list[int],
    begin: int = 0,
    end: int = 1 << 62,
    limit: int = 1000,
    slots: int = 7,
) -> list[list[int]]:
    offsets, starts = lookup_many(
        data, slots, 1000, np.array(hashes, np.int32), begin, end, limit, kernel
    )
    return [offsets[starts[row] : starts[row + 1]].tolist() for row in range(len(hashes))]


def test_lookup_is_newest_first_and_limited(kernel: Kernel) -> None:
    data = built(kernel, [3, 10, 3, 3, 4])
    assert looked_up(kernel, data, [3, 4, 5, 10, 3]) == [
        [300, 200, 0],
        [400],
        [],
        [100],
        [300, 200, 0],
    ]
    assert looked_up(kernel, data, [3, 10], limit=2) == [[300, 200], [100]]
    assert looked_up(kernel, data, [3], limit=0) == [[]]
    assert looked_up(kernel, data, []) == []
    assert looked_up(kernel, data, [-1, -7]) == [[], []]


def test_lookup_keeps_to_the_times(kernel: Kernel) -> None:
    data = built(kernel, [3] * 10)
    assert looked_up(kernel, data, [3], BEGIN + 3000, BEGIN + 5000) == [[500, 400, 300]]
    assert looked_up(kernel, data, [3], BEGIN + 3001, BEGIN + 4999) == [[400]]


def test_lookup_survives_any_bytes() -> None:
    """Loops, links outside of the file, truncation: an end, and the same from both kernels."""
    chance = random.Random(2)
    good = built(load("compiled"), [chance.randrange(30) for _ in range(200)])
    for _ in range(400):
        data = bytearray(good)
        for _ in range(chance.randrange(1, 20)):
            at = chance.randrange(200 * 20 + 68)
            data[at] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        data = data[: chance.choice([len(data), 40, 67, 68, 69, chance.randrange(5000)])]
        hashes = [chance.randrange(30) for _ in range(40)]
        time = BEGIN + chance.randrange(200_000)
        for begin, end in ((0, 1 << 62), (time, time + 30_000)):
            expected = looked_up(load("reference"), bytes(data), hashes, begin, end)
            assert looked_up(load("compiled"), bytes(data), hashes, begin, end) == expected


def test_relink_finds_what_is_wrong(kernel: Kernel) -> None:
    data = built(kernel, [3, 10, 4, 3])
    assert relink(data, 7, 5, kernel) == Relinked(2, 0, 0, 0, -1)
    link = index_file.entry_at(7, 2) + 16
    assert relink(data[:link] + b"\0\0\0\0" + data[link + 4 :], 7, 5, kernel)[1:3] == (1, 2)
    slot = index_file.slot_at(7, 4)
    assert relink(data[:slot] + b"\0\0\0\1" + data[slot + 4 :], 7, 5, kernel)[3:] == (1, 4)
    key_hash = index_file.entry_at(7, 3)
    assert relink(data[:key_hash] + b"\xff" + data[key_hash + 1 :], 7, 5, kernel).wrong_links == 1


def test_relink_keeps_to_the_buffer(kernel: Kernel) -> None:
    data = built(kernel, [3, 10, 4, 3])
    cut = data[: index_file.entry_at(7, 3) + 19]
    assert relink(cut, 7, 1 << 30, kernel).wrong_slots == 2
    assert relink(data[:68], 7, 5, kernel).used_slots == 0
    with pytest.raises(FormatError, match="too few"):
        relink(data[:67], 7, 5, kernel)
