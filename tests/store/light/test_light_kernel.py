"""The compiled kernels of light queues do what their readable twin does, whatever the bytes are."""

from __future__ import annotations

import random

import numpy as np

from mqlake.dispatch.batch import Batch
from mqlake.dispatch.columns import KEY, RECORD
from mqlake.dispatch.queue_table import QueueTable
from mqlake.dispatch.window import SLACK
from mqlake.formats.light.light_queue_file import (
    capacity_of,
    entry_at,
    file_size,
    slots_of,
)
from mqlake.store.light import compiled, reference
from mqlake.store.light.light_columns import (
    MESSAGE,
    NEWEST,
    LightBounds,
    LightBuffer,
    LightMessages,
    Newest,
)
from mqlake.store.light.light_kernel import LightKernel

SEGMENT = 1 << 14
NAMES, OFFSETS = "INNER_MULTI_DISPATCH", "INNER_MULTI_QUEUE_OFFSET"
SEED = 0x8123456789ABCDEF


def drawn_value(dice: random.Random, count: int, *, is_name: bool) -> str:
    names = ["%LMQ%$P$a", "%LMQ%b", "%LMQ%", "%LMX%c", "x", "", "%LMQ%" + "n" * 200]
    names += ["%LMQ%" + "n" * 1019, "%LMQ%" + "n" * 1020, f"%LMQ%{dice.randrange(100)}"]
    offsets = ["0", "7", "", "x", "1x", "-1", "007", "9" * 19, str((1 << 63) - 1), str(1 << 63)]
    offsets += ["9" * 20, "²", str(dice.randrange(1 << 40))]
    return ",".join(dice.choice(names if is_name else offsets) for _ in range(count))


def drawn_properties(dice: random.Random) -> bytes:
    pairs = list[str]()
    count = dice.choice((1, 1, 1, 1, 2, 3, 63, 64, 65, 70))
    for name in [*dice.choices((NAMES, OFFSETS), k=dice.randrange(5)), NAMES, OFFSETS]:
        more = dice.choice((0, 0, 0, 0, 1))
        pairs.append(f"{name}\x01{drawn_value(dice, count + more, is_name=name == NAMES)}")
    pairs += dice.choices(
        ("KEYS\x01k", "x" + NAMES + "\x01%LMQ%z", NAMES, NAMES + "\x01", "\x01", "", "a\x01\x01b"),
        k=dice.randrange(4),
    )
    dice.shuffle(pairs)
    data = bytearray("\x02".join(pairs).encode() + dice.choice((b"", b"\x02")))
    if dice.randrange(4) == 0:
        data[dice.randrange(len(data))] = dice.choice(b"\x00\x01\x02,%9")
    return bytes(data)


def drawn_batch(dice: random.Random, count: int) -> Batch:
    records, data, at = np.zeros(count, RECORD), bytearray(), 0
    for row in range(count):
        properties = drawn_properties(dice)
        records[row]["properties_at"] = len(data)
        records[row]["properties_length"] = len(properties)
        records[row]["queue"] = dice.choice((0, 0, 1, 2, -1))
        size = dice.randrange(100, 300)
        records[row]["physical_offset"], records[row]["size"] = at, size
        at += size
        data += properties
    buffer = np.frombuffer(data + bytes(SLACK), np.uint8)
    return Batch(buffer, 0, records, np.zeros(0, KEY), QueueTable())


def found_by(kernel: LightKernel, batch: Batch, room: int) -> list[tuple[int, ...]]:
    topics, row = np.array([0, -1, 1], np.int32), 0
    messages, found = np.zeros(room, MESSAGE), list[tuple[int, ...]]()
    while row < len(batch.records):
        count, row = kernel.find(batch, topics, row, SEED, messages)
        found += messages[:count].tolist()
    return found


def test_both_find_the_same_light_queues() -> None:
    dice, counts = random.Random(1), list[int]()
    for number in range(300):
        batch = drawn_batch(dice, 20)
        room = dice.choice((64, 100, 4096))
        found = found_by(compiled, batch, room)
        assert found == found_by(reference, batch, room), number
        counts.append(len(found))
    assert sum(counts) > 1000


class LightTwins:
    """A file and a table for each kernel."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.slots, self.capacity = slots_of(SEGMENT), dice.choice((100, capacity_of(SEGMENT)))
        self.files, self.tables = list[LightBuffer](), list[Newest]()
        for _ in range(2):
            data = np.zeros(file_size(SEGMENT), np.uint8)
            self.files.append(LightBuffer(data, self.slots, self.capacity, SEGMENT, 1, 0))
            self.tables.append(Newest(np.zeros(16, NEWEST), np.zeros(1, np.int64)))

    def drawn_messages(self, count: int, at: int) -> LightMessages:
        messages = np.zeros(count, MESSAGE)
        keys_dice = random.Random(3)
        keys = [keys_dice.getrandbits(64) for _ in range(40)]
        messages["name_hash"] = [self.dice.choice(keys) for _ in range(count)]
        messages["physical_offset"] = [at + row // 2 * 10 for row in range(count)]
        messages["queue_offset"] = [at + self.dice.randrange(20) for _ in range(count)]
        messages["size"] = 10
        return messages

    def append(self, messages: LightMessages, bounds: LightBounds) -> None:
        outcomes = list[object]()
        for which, kernel in enumerate((compiled, reference)):
            row, accepted = 0, np.zeros(len(messages), np.bool_)
            while True:
                done = kernel.append(
                    self.files[which], self.tables[which], messages, row, bounds, accepted
                )
                outcomes.append(done)
                self.files[which] = self.files[which]._replace(
                    following=done.following, queues=done.queues
                )
                if (row := done.end) == len(messages):
                    break
                self.grow(which, kernel)
            outcomes.append(accepted.tolist())
        half = len(outcomes) // 2
        assert outcomes[:half] == outcomes[half:]

    def grow(self, which: int, kernel: LightKernel, low: int = 0) -> None:
        old = self.tables[which].rows
        table = Newest(np.zeros(2 * len(old), NEWEST), np.zeros(1, np.int64))
        kernel.move(old, table, low)
        self.tables[which] = table

    def check(self) -> None:
        one, other = self.files
        assert one.data.tobytes() == other.data.tobytes()
        assert self.tables[0].rows.tobytes() == self.tables[1].rows.tobytes()
        assert self.tables[0].used == self.tables[1].used

    def collected(self, which: int, kernel: LightKernel) -> list[tuple[int, ...]]:
        table, number = Newest(np.zeros(16, NEWEST), np.zeros(1, np.int64)), 1
        while (n := kernel.collect(self.files[which], number, table)) < self.files[which].following:
            larger = Newest(np.zeros(2 * len(table.rows), NEWEST), np.zeros(1, np.int64))
            kernel.move(table.rows, larger, 0)
            table, number = larger, n
        return sorted(row for row in table.rows.tolist() if row[3])


def test_both_append_the_same_entries() -> None:
    dice = random.Random(2)
    for _ in range(20):
        twins, at = LightTwins(dice), SEGMENT
        for _ in range(20):
            count = dice.randrange(1, 12)
            low = dice.choice((0, 0, at + 20))
            twins.append(twins.drawn_messages(count, at), LightBounds(low, dice.choice((0, at))))
            twins.check()
            at += 60
        known = sorted(row for row in twins.tables[0].rows.tolist() if row[3])
        assert twins.collected(0, compiled) == twins.collected(1, reference) == known


def test_damaged_links_mislead_neither() -> None:
    dice = random.Random(4)
    for _ in range(30):
        twins, at = LightTwins(dice), SEGMENT
        twins.append(twins.drawn_messages(30, at), LightBounds(0, 0))
        start = entry_at(twins.slots, 1)
        damage = [dice.randrange(start, start + 30 * 40) for _ in range(40)]
        for place in damage:
            byte = dice.randrange(256)
            for file in twins.files:
                file.data[place] = byte
        twins.append(twins.drawn_messages(30, at + 1000), LightBounds(0, 0))
        twins.check()
        assert twins.collected(0, compiled) == twins.collected(1, reference)


def test_a_table_forgets_the_queues_of_removed_files() -> None:
    twins = LightTwins(random.Random(5))
    twins.append(twins.drawn_messages(30, SEGMENT), LightBounds(0, 0))
    for which, kernel in enumerate((compiled, reference)):
        twins.grow(which, kernel, SEGMENT + 100)
    twins.check()
    rows = [row for row in twins.tables[0].rows.tolist() if row[3]]
    assert rows
    assert min(row[1] for row in rows) >= SEGMENT + 100
    assert len(rows) == int(twins.tables[0].used[0])
