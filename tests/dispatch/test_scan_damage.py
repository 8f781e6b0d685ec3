"""A scan of bad bytes: nothing is raised, nothing is hidden, what is good is found."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqlake.dispatch.gap import Gap
from mqlake.dispatch.kernel import Kernel, load
from mqlake.dispatch.reference import scan_records
from mqlake.dispatch.scan import SegmentScan, Want
from mqlake.formats import record
from mqlake.formats.record import Fault
from mqlake.storage.local import LocalDirectory
from mqlake.storage.memory import MemoryFile
from tests.dispatch.logs import (
    Seen,
    assert_covered,
    damage,
    encode,
    log,
    random_log,
    scan,
)
from tests.golden import SEGMENT_SIZE, TORN_VARIANTS, store


def changed(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def test_flipped_body_byte_keeps_the_record(kernel: Kernel) -> None:
    data = log([{"body": b"x" * 100}] * 3)
    _, second, third = scan(data, kernel).offsets
    seen = scan(changed(data, second + 120, b"!"), kernel)
    assert [row["fault"] for row in seen.records] == [Fault.GOOD, Fault.CRC, Fault.GOOD]
    assert seen.gaps == [Gap(second, third - second, Fault.CRC, all_zero=False)]
    assert not scan(changed(data, second + 120, b"!"), kernel, crc=False).gaps


@pytest.mark.parametrize(
    ("at", "new", "fault"),
    [
        (0, b"\0\0\0\0", Fault.UNWRITTEN),
        (0, b"\0\0\0\5", Fault.SIZE),
        (0, b"\x80\0\0\0", Fault.SIZE),
        (0, b"\0\1\0\0", Fault.SIZE),
        (3, b"\x70", Fault.LENGTHS),
        (record.MAGIC_AT, b"\0", Fault.MAGIC),
        (record.MAGIC_AT, record.BLANK_MAGIC.to_bytes(4, "big"), Fault.BLANK),
        (record.PHYSICAL_OFFSET_AT, b"\1", Fault.OFFSET),
        (84, b"\xff", Fault.LENGTHS),
        (84 + 4 + 4 + 1, b"/", Fault.TOPIC),
        (84 + 4 + 4 + 1, b"\xff", Fault.TOPIC),
        (84 + 4 + 4, b"\x80", Fault.LENGTHS),
    ],
)
def test_damaged_structure_costs_one_record(
    at: int, new: bytes, fault: Fault, kernel: Kernel
) -> None:
    data = log([{}, {}, {}, {}])
    offsets = scan(data, kernel).offsets
    bad = changed(data, offsets[1] + at, new)
    seen = scan(bad, kernel)
    if fault is Fault.BLANK:
        # RocketMQ believes a blank record, and looks at the next segment.
        assert seen.offsets == offsets[:1]
        assert damage(seen) == [(offsets[1], len(data) - offsets[1], fault)]
    else:
        assert seen.offsets == [offsets[0], *offsets[2:]]
        assert damage(seen) == [(offsets[1], offsets[2] - offsets[1], fault)]
    assert record.check(bad, offsets[1], len(bad), offsets[1])[0] is fault
    assert_covered(seen)


def test_blank_record_ends_the_segment(kernel: Kernel) -> None:
    data = log([{}, {}])
    seen = scan(data + record.encode_blank(300), kernel)
    assert seen.stop == len(data) + 300
    assert not seen.gaps


def test_blank_record_is_found_behind_damage(kernel: Kernel) -> None:
    data = log([{}]) + b"?" * 200
    seen = scan(data + record.encode_blank(300), kernel)
    assert seen.stop == len(data) + 300
    assert damage(seen) == [(len(data) - 200, 200, Fault.MAGIC)]


def test_zeros_up_to_the_end_are_unwritten_space(kernel: Kernel) -> None:
    data = log([{}])
    for length in (1, 7, 8, 100_000):
        seen = scan(data + bytes(length), kernel)
        fault = Fault.SHORT if length < 8 else Fault.UNWRITTEN
        assert seen.gaps == [Gap(len(data), length, fault, all_zero=True)]
        assert seen.stop == len(data) + length


def test_zeros_between_records_are_a_gap(kernel: Kernel) -> None:
    first = log([{}])
    data = first + bytes(300_000)
    data += log([{}, {}], base=len(data))
    seen = scan(data, kernel)
    assert len(seen.records) == 3
    ((offset, length, fault, all_zero, is_open),) = seen.gaps
    assert (offset, length, fault, all_zero, is_open) == (
        len(first),
        300_000,
        Fault.UNWRITTEN,
        True,
        False,
    )


def test_a_gap_at_the_scans_end_is_open(kernel: Kernel) -> None:
    data = log([{}]) + b"?" * 1000
    seen = scan(data, kernel, end=500)
    assert seen.gaps == [Gap(len(data) - 1000, 1500 - len(data), Fault.MAGIC, False, open=True)]
    assert seen.stop == 500


def test_nothing_found_when_searching(kernel: Kernel) -> None:
    seen = scan(b"?" * 1000, kernel, start=10, exact=False)
    assert (seen.start, seen.stop, seen.gaps) == (1000, 1000, [])


def test_search_refuses_imitations(kernel: Kernel) -> None:
    """A body that holds a record is not mistaken for it: the stated offset is another."""
    data = log([{"body": b"??" + encode(0)}, {}])
    offsets = scan(data, kernel).offsets
    for start in range(1, offsets[1] + 1):
        assert scan(data, kernel, start=start, exact=False, want=Want.LOCATE).start == offsets[1]


def test_search_believes_a_perfect_imitation(kernel: Kernel) -> None:
    """Only that the scan before ends elsewhere gives it away."""
    inner_at = 88 + 2
    data = log([{"body": b"??" + encode(inner_at)}, {}])
    right = scan(data, kernel, start=5, exact=False)
    left = scan(data, kernel, end=5)
    assert right.start == inner_at
    assert left.stop != right.start


def test_search_refuses_a_blank_record_that_ends_early(kernel: Kernel) -> None:
    data = log([{}])
    data += b"?" + record.encode_blank(100) + b"?" * 50
    data += log([{}], base=len(data))
    assert len(scan(data, kernel).offsets) == 2


def test_record_cut_at_the_end_of_the_file(kernel: Kernel) -> None:
    data = log([{}, {"body": b"x" * 200}])
    second = scan(data, kernel).offsets[1]
    for length in range(second, len(data)):
        seen = scan(data[:length], kernel, want=Want.LOCATE)
        assert seen.offsets == [0]
        assert seen.stop == length
        if length > second:
            (gap,) = seen.gaps
            assert (gap.physical_offset, gap.length) == (second, length - second)
            assert gap.fault is (Fault.SHORT if length < second + 8 else Fault.SIZE)


class CutFile(MemoryFile):
    """A file that became shorter after it was opened."""

    @property
    def size(self) -> int:
        return super().size + 1000


@pytest.mark.parametrize("window", [128, 4096])
def test_file_cut_while_it_is_read(window: int, kernel: Kernel) -> None:
    data = log([{}] * 5)
    file = CutFile(data[:-10])
    steps = SegmentScan(file, 0, 0, file.size, exact=True, window=window, kernel=kernel)
    assert sum(len(batch.records) for batch in steps) == 4
    assert steps.stop == file.size
    (gap,) = steps.gaps
    assert (gap.physical_offset, gap.length) == (400, file.size - 400)


def test_lying_size_beyond_the_window(kernel: Kernel) -> None:
    """A size that fits into the file, but not to the lengths, does not bring a larger window."""
    data = log([{}]) + encode(103, body=b"y")
    bad = changed(data, len(log([{}])), (500_000).to_bytes(4, "big")) + bytes(600_000)
    seen = scan(bad, kernel, window=4096)
    assert seen.gaps[0].fault in (Fault.LENGTHS, Fault.OFFSET)
    assert_covered(seen)


def test_hostile_candidates_do_not_make_a_search_quadratic() -> None:
    """Each of many candidates has a body of megabytes up to the same end, and a wrong CRC."""
    size, step = 8 << 20, 96
    data = np.frombuffer(random.Random(5).randbytes(size), np.uint8).copy()
    data[-3 - 1 :] = np.frombuffer(b"\1T\0\0", np.uint8)
    for at in range(0, size - 1000, step):
        head = bytearray(encode(at)[:88])
        head[:4] = (size - at).to_bytes(4, "big")
        head[84:88] = (size - at - 88 - 4).to_bytes(4, "big")
        data[at : at + 88] = np.frombuffer(head, np.uint8)
    seen = scan(data.tobytes(), load("compiled"), start=1, exact=False, window=1 << 20)
    assert seen.stop == size


@pytest.mark.parametrize("name", TORN_VARIANTS)
def test_golden_torn_logs(name: str, kernel: Kernel) -> None:
    """The first damage is where RocketMQ cuts the log."""
    directory = LocalDirectory(store(name).path)
    cut_at = [
        gap.physical_offset
        for segment in directory.names("commitlog")
        for gap in scan(
            directory.open(f"commitlog/{segment}").read(0, SEGMENT_SIZE),
            kernel,
            base=int(segment),
        ).gaps
        if not gap.all_zero
    ]
    expected = 5352421 if name.endswith("flip5") else 5359386
    assert min(cut_at) == expected


def mutated(chance: random.Random, data: bytes) -> bytes:
    """Return the log with some bytes changed where it hurts: at the heads of records."""
    buffer = bytearray(data)
    heads = [at for at, *_ in scan_records(MemoryFile(data), 0, 0, len(data), exact=True)]
    for _ in range(chance.randrange(1, 5)):
        at = chance.choice(heads) + chance.randrange(100)
        if at < len(buffer):
            buffer[at] = chance.choice([0, 0xFF, 0x80, 1, buffer[at] ^ 1 << chance.randrange(8)])
    if chance.random() < 0.2:
        del buffer[chance.randrange(len(buffer)) :]
    if chance.random() < 0.2:
        buffer += bytes(chance.randrange(200))
    return bytes(buffer)


def assert_same(data: bytes, **arguments: int | bool) -> Seen:
    """Check that both kernels, any windows and the plain scan say the same; return it."""
    seen = scan(data, load("compiled"), **arguments)
    assert_covered(seen)
    assert seen == scan(data, load("reference"), **arguments)
    assert seen == scan(data, load("compiled"), **arguments, window=128)
    start, end = arguments.get("start", 0), arguments.get("end", len(data))
    gaps: list[Gap] = []
    found = list(
        scan_records(
            MemoryFile(data), 0, start, end, exact=bool(arguments.get("exact", True)), gaps=gaps
        )
    )
    assert [(at, layout.size, fault) for at, layout, fault in found] == [
        (row["physical_offset"], row["size"], row["fault"]) for row in seen.records
    ]
    assert sorted(gaps) == sorted(seen.gaps)
    return seen


@pytest.mark.parametrize("seed", range(150))
def test_mutated_logs(seed: int) -> None:
    chance = random.Random(seed)
    data = mutated(chance, random_log(seed, chance.randrange(1, 15)))
    assert_same(data)
    assert_same(data, start=chance.randrange(len(data) + 1), exact=False)
    assert_same(data, end=chance.randrange(len(data) + 1))


@settings(max_examples=60)
@given(st.binary(max_size=400), st.integers(0, 400))
def test_a_scan_survives_any_bytes(data: bytes, start: int) -> None:
    assert_same(data)
    assert_same(data, start=min(start, len(data)), exact=False)


@settings(max_examples=60)
@given(st.binary(max_size=300), st.binary(min_size=1, max_size=60))
def test_a_scan_survives_any_properties(properties: bytes, topic: bytes) -> None:
    data = bytearray(encode(topic="t" * len(topic), properties=properties))
    at = bytes(data).index(b"body") + 5
    data[at : at + len(topic)] = topic
    assert_same(bytes(data))
