"""Following queue entries: good ones lead to their records, all others to a reason."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.dispatch import reference
from mqlake.dispatch.answers import Followed
from mqlake.dispatch.compiled import calls
from mqlake.dispatch.kernel import Kernel
from mqlake.dispatch.queue_read import LogPart, ReadLimits, Wanted, wanted
from mqlake.dispatch.verdict import MORE, OTHER
from mqlake.formats import consume_queue, record
from mqlake.formats.consume_queue import QueueEntry
from mqlake.formats.record import Fault
from tests.dispatch.logs import encode

BASE = 1 << 40
ANY = ReadLimits(0, 0, 1 << 30, 1 << 40)
TOPIC = wanted("Topic", 7)


class Queue:
    """The records of one queue in a segment, and the entries that lead to them."""

    def __init__(self, count: int, topic: str = "Topic") -> None:
        data = bytearray()
        self.entries: list[QueueEntry] = []
        for number in range(count):
            one = encode(
                BASE + len(data), topic=topic, queue_id=7, queue_offset=number, body=b"b" * number
            )
            self.entries.append(QueueEntry(BASE + len(data), len(one), number % 3))
            data += one
        self.data = bytes(data)

    @property
    def part(self) -> LogPart:
        return LogPart(np.frombuffer(self.data, np.uint8), BASE, 0, BASE + len(self.data))


def follow(
    kernel: Kernel,
    entries: Sequence[QueueEntry],
    part: LogPart,
    which: Wanted = TOPIC,
    limits: ReadLimits = ANY,
    first: int = 0,
) -> tuple[Followed, list[tuple[int, int, int, int]]]:
    packed = np.frombuffer(b"".join(map(consume_queue.encode, entries)), np.uint8)
    rows = np.zeros((4, len(entries)), np.int64)
    found = kernel.follow(packed, first, part, which, limits, rows)
    return found, list(map(tuple, rows[:, : found.rows].T.tolist()))


def test_every_entry_leads_to_its_record(kernel: Kernel) -> None:
    queue = Queue(40)
    found, rows = follow(kernel, queue.entries, queue.part)
    assert found == (40, 40, 40, len(queue.data), Fault.GOOD)
    assert rows == [(n, at - BASE, size, 0) for n, (at, size, _) in enumerate(queue.entries)]


def test_reads_stop_at_the_limits_of_messages_and_bytes(kernel: Kernel) -> None:
    queue = Queue(10)
    sizes = [entry.size for entry in queue.entries]
    for most in range(1, 12):
        found, rows = follow(
            kernel, queue.entries, queue.part, limits=ReadLimits(0, 0, most, 1 << 40)
        )
        assert found.entries == len(rows) == min(most, 10)
    for bytes_ in range(sum(sizes) + 2):
        found, rows = follow(kernel, queue.entries, queue.part, limits=ReadLimits(0, 0, 99, bytes_))
        # The first one is given whatever its size.
        fitting = next((n for n in range(10, 0, -1) if sum(sizes[:n]) <= bytes_), 1)
        assert found.entries == len(rows) == fitting
        assert found.bytes == sum(sizes[:fitting])
    found, _ = follow(kernel, queue.entries, queue.part, limits=ReadLimits(5, 1000, 5, 1 << 40))
    assert found == (0, 0, 5, 1000, Fault.GOOD)


def test_entries_are_chosen_by_tags_codes(kernel: Kernel) -> None:
    queue = Queue(10)
    entries = [*queue.entries[:9], queue.entries[9]._replace(tags_code=1 << 31)]
    _, rows = follow(kernel, entries, queue.part, wanted("Topic", 7, [1, 5]))
    # Codes beyond 32 bits are no hashes.
    assert [row[0] for row in rows] == [1, 4, 7, 9]
    _, rows = follow(kernel, entries, queue.part, wanted("Topic", 7, []))
    assert [row[0] for row in rows] == [9]


def test_the_next_segment_is_asked_for(kernel: Kernel) -> None:
    queue = Queue(10)
    elsewhere = queue.entries[6]._replace(physical_offset=BASE + len(queue.data) + 5)
    entries = [*queue.entries[:6], elsewhere]
    part = queue.part._replace(high=1 << 50)
    found, _ = follow(kernel, entries, part)
    assert found == (6, 6, 6, sum(entry.size for entry in entries[:6]), MORE)
    found, _ = follow(kernel, [elsewhere._replace(physical_offset=BASE - 1)], part)
    assert (found.entries, found.verdict) == (0, MORE)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"physical_offset": -5}, Fault.SHORT),
        ({"physical_offset": 1 << 62}, Fault.SHORT),
        ({"physical_offset": -(1 << 63)}, Fault.SHORT),
        ({"physical_offset": BASE}, Fault.SIZE),
        ({"physical_offset": BASE + 1}, Fault.MAGIC),
        ({"size": 0}, Fault.SIZE),
        ({"size": -1}, Fault.SIZE),
        ({"size": 0x7FFFFFFF}, Fault.SIZE),
    ],
)
def test_wrong_entries_are_reported(change: dict[str, int], reason: Fault, kernel: Kernel) -> None:
    queue = Queue(9)
    entries = [*queue.entries]
    entries[4] = entries[4]._replace(**change)
    found, rows = follow(kernel, entries, queue.part)
    assert (found.entries, found.messages) == (9, 8)
    assert [row[3] for row in rows] == [0, 0, 0, 0, reason, 0, 0, 0, 0]


@pytest.mark.parametrize(
    "which",
    [wanted("Topic", 8), wanted("Topi", 7), wanted("Topic2", 7), wanted("topic", 7)],
    ids=["queue", "shorter", "longer", "other"],
)
def test_records_of_another_queue(which: Wanted, kernel: Kernel) -> None:
    queue = Queue(3)
    _, rows = follow(kernel, queue.entries, queue.part, which)
    assert [row[3] for row in rows] == [OTHER] * 3


def test_records_of_another_place_in_the_queue(kernel: Kernel) -> None:
    queue = Queue(3)
    _, rows = follow(kernel, queue.entries, queue.part, first=1)
    assert [row[3] for row in rows] == [OTHER] * 3


@pytest.mark.parametrize("topic", ["a", "1234567", "12345678", "123456789", "x" * 127, "y" * 200])
def test_topics_of_any_length(topic: str, kernel: Kernel) -> None:
    queue = Queue(3, topic)
    found, _ = follow(kernel, queue.entries, queue.part, wanted(topic, 7))
    assert found.messages == 3
    found, _ = follow(kernel, queue.entries, queue.part, wanted(topic[:-1] + "z", 7))
    assert found.messages == 0


def test_damaged_bodies_count_unless_told_otherwise(kernel: Kernel) -> None:
    queue = Queue(3)
    at = queue.entries[2].physical_offset - BASE + record.MIN_SIZE - 3
    queue.data = queue.data[:at] + b"?" + queue.data[at + 1 :]
    _, rows = follow(kernel, queue.entries, queue.part)
    assert [row[3] for row in rows] == [0, 0, Fault.CRC]
    found, _ = follow(kernel, queue.entries, queue.part, TOPIC._replace(crc=False))
    assert found.messages == 3


def test_nothing_is_read_beyond_the_readable_end(kernel: Kernel) -> None:
    queue = Queue(5)
    last = queue.entries[4].physical_offset
    for high, reason in ((last, Fault.SHORT), (last + 1, Fault.SHORT), (last + 99, Fault.SIZE)):
        _, rows = follow(kernel, queue.entries, queue.part._replace(high=high))
        assert [row[3] for row in rows] == [0, 0, 0, 0, reason]


_ENTRY = st.builds(
    QueueEntry,
    st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(BASE - 9, BASE + 2000)),
    st.one_of(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(0, 200)),
    st.integers(-(1 << 63), (1 << 63) - 1),
)


@given(st.data())
def test_twins_agree(data: st.DataObject) -> None:
    """On any entries over a segment with any bytes changed; and neither raises."""
    queue = Queue(12)
    damaged = bytearray(queue.data)
    for at in data.draw(st.lists(st.integers(0, len(damaged) - 1), max_size=4)):
        damaged[at] = data.draw(st.integers(0, 255))
    queue.data = bytes(damaged)
    entries = data.draw(st.lists(st.one_of(st.sampled_from(queue.entries), _ENTRY), max_size=20))
    chance = random.Random(data.draw(st.integers()))
    part = queue.part
    high = chance.choice([part.high, part.high + 500, part.high - 30])
    part = part._replace(low=chance.choice([0, BASE, BASE + 200]), high=high)
    codes = chance.choice([None, [0], [1, 2]])
    which = wanted("Topic", 7, codes, crc=chance.random() < 0.5)
    limits = ReadLimits(0, 0, chance.randrange(1, 20), chance.randrange(3000))
    one, other = (follow(twin, entries, part, which, limits) for twin in (calls, reference))
    assert one == other


def test_copied_records(kernel: Kernel) -> None:
    queue = Queue(20)
    chosen = [3, 4, 17, 0, 9]
    at, sizes = (
        np.array([queue.entries[number][column] for number in chosen], np.int64)
        for column in (0, 1)
    )
    target = np.zeros(int(sizes.sum()) + 3, np.uint8)
    kernel.copy_records(target, queue.part.buffer, at - BASE, sizes)
    records = [
        queue.data[start - BASE :][:size]
        for start, size, _ in map(queue.entries.__getitem__, chosen)
    ]
    assert target.tobytes() == b"".join(records) + bytes(3)
