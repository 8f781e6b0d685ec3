"""Small store directories as path -> bytes: sound ones made of real records, and mutated ones."""

from __future__ import annotations

import functools
import random
from collections import defaultdict
from typing import NamedTuple

import numpy as np

from mqlake.dispatch.derived.index_entries import IndexFileBuilder
from mqlake.formats import checkpoint, consume_queue, record, sys_flag
from mqlake.formats.checkpoint import Checkpoint
from mqlake.formats.consume_queue import QueueEntry
from mqlake.formats.dialect import Dialect
from mqlake.formats.file_name import index_name, segment_name
from mqlake.formats.index_file import index_keys
from mqlake.formats.java_string import index_key_hash
from mqlake.formats.record import Record
from tests.golden import store
from tests.hostile import seeds
from tests.hostile.cases import Case
from tests.hostile.mutate import NAMES, Field, change

SEGMENT = 4096
QUEUE_FILE = 200
SLOTS, ENTRIES = 10, 40
BASE = 3 * SEGMENT

Files = dict[str, bytes]


class Store(NamedTuple):
    """A store's files, and the records that a sound store of these files holds."""

    files: Files
    records: list[Record]


@functools.cache
def configuration() -> Files:
    """Return real configuration files, by path."""
    folder = store("rmq5-clean").path / "config"
    return {f"config/{path.name}": path.read_bytes() for path in sorted(folder.iterdir())}


def sound(dice: random.Random) -> Store:
    """Return a store of 1 to 25 real records, with the derived files that RocketMQ would make."""
    log, records = _log(dice)
    files = dict(log)
    dialect = Dialect.V5_5
    files |= _queues(records)
    files |= _index(records, dialect)
    last = records[-1]
    times = (last.store_timestamp,) * 3
    stamp = Checkpoint(*times, 0, last.physical_offset, last.physical_offset)
    files["checkpoint"] = checkpoint.encode(stamp, dialect)
    files |= {path: configuration()[path] for path in ("config/topics.json",)}
    if dice.random() < 0.3:
        files["abort"] = b"4711"
    return Store(files, records)


def _log(dice: random.Random) -> tuple[Files, list[Record]]:
    segments, records = [bytearray()], list[Record]()
    queue_offsets: dict[tuple[str, int], int] = defaultdict(lambda: first)
    first = dice.choice((0, 0, 13))
    time = 1_795_000_000_000
    for _ in range(dice.randrange(1, 26)):
        fields = dict(dice.choice(seeds.real_fields()))
        queue = fields["topic"], fields["queue_id"]
        if sys_flag.is_queued(fields["sys_flag"]):
            fields["queue_offset"] = queue_offsets[queue]
            queue_offsets[queue] += 1
        time += dice.choice((0, 1, 999, 70_000))
        fields["store_timestamp"] = time
        size = len(record.encode(**fields))
        if len(segments[-1]) + size + record.FRAME_SIZE > SEGMENT:
            segments[-1] += record.encode_blank(SEGMENT - len(segments[-1]))
            segments.append(bytearray())
        offset = BASE + (len(segments) - 1) * SEGMENT + len(segments[-1])
        data = record.encode(**fields, physical_offset=offset)
        records.append(record.decode(data))
        segments[-1] += data
    files = {
        f"commitlog/{segment_name(BASE + number * SEGMENT)}": bytes(data.ljust(SEGMENT, b"\0"))
        for number, data in enumerate(segments)
    }
    return files, records


def _queues(records: list[Record]) -> Files:
    queues: dict[str, dict[int, bytes]] = defaultdict(dict)
    for each in records:
        if sys_flag.is_queued(each.sys_flag):
            entry = QueueEntry(each.physical_offset, each.size, each.tags_code)
            path = f"consumequeue/{each.topic}/{each.queue_id}"
            queues[path][each.queue_offset] = consume_queue.encode(entry)
    files: Files = {}
    per_file = QUEUE_FILE // consume_queue.ENTRY_SIZE
    blank = consume_queue.encode(consume_queue.BLANK_ENTRY)
    for path, entries in queues.items():
        start = min(entries) // per_file * per_file
        for first in range(start, max(entries) + 1, per_file):
            places = range(first, first + per_file)
            rest = bytes(consume_queue.ENTRY_SIZE)
            data = (entries.get(place, blank if place < min(entries) else rest) for place in places)
            name = segment_name(first * consume_queue.ENTRY_SIZE)
            files[f"{path}/{name}"] = b"".join(data)
    return files


def _index(records: list[Record], dialect: Dialect) -> Files:
    keys = [
        (index_key_hash(text), each.physical_offset, each.store_timestamp)
        for each in records
        if sys_flag.is_indexed(each.sys_flag)
        for text in index_keys(each.topic, each.properties, dialect)
    ]
    files: Files = {}
    end = 0
    for first in range(0, len(keys), ENTRIES - 1):
        part = keys[first : first + ENTRIES - 1]
        builder = IndexFileBuilder(SLOTS, ENTRIES, previous_end_timestamp=end)
        hashes, offsets, times = zip(*part, strict=True)
        builder.insert(
            np.array(hashes, np.int32), np.array(offsets, np.int64), np.array(times, np.int64)
        )
        end = times[-1]
        with builder.finish() as view:
            files[f"index/{index_name(times[0] + first)}"] = bytes(view)
        builder.close()
    return files


def mutated(case: Case) -> Store:
    """Return a store with one to four things changed: content, sizes, names, presence."""
    found = sound(case.dice)
    files = dict(found.files)
    for _ in range(case.dice.choice((1, 1, 2, 4))):
        _mutate(case, files)
    case.feed(sum(map(len, files.values())))
    return Store(files, found.records)


def _mutate(case: Case, files: Files) -> None:
    dice = case.dice
    path = dice.choice(sorted(files))
    way = dice.randrange(12)
    if way < 7:
        new = bytearray(files[path])
        for _ in range(dice.choice((1, 2, 8))):
            case.tell(f"{path}: {change(dice, new, numbers_in(path, bytes(new)))}")
        files[path] = bytes(new)
    elif way == 7:
        case.tell(f"remove {path}")
        if sum(name.startswith("commitlog/") for name in files) > 1 or path[:3] != "com":
            del files[path]
    elif way == 8:
        folder, _, _ = path.rpartition("/")
        name = dice.choice(_FILE_NAMES)
        case.tell(f"rename {path} to {name!r}")
        files[f"{folder}/{name}".lstrip("/")] = files.pop(path)
    elif way == 9:
        topic = dice.choice(NAMES).decode("utf-8", "surrogateescape")
        queue = dice.choice(_QUEUE_NAMES)
        case.tell(f"add topic {topic!r}, queue {queue!r}")
        files[f"consumequeue/{topic}/{queue}/{segment_name(0)}"] = files[path][:QUEUE_FILE]
    elif way == 10:
        case.tell("log of mutated records")
        base = BASE
        data = seeds.segment(case, dice.randrange(1, 8), base)
        files[f"commitlog/{segment_name(base)}"] = data[:SEGMENT].ljust(SEGMENT, b"\0")
    else:
        folder, _, _ = path.rpartition("/")
        name = dice.choice(_FILE_NAMES)
        case.tell(f"add {folder}/{name!r}")
        files[f"{folder}/{name}".lstrip("/")] = dice.choice((b"", b"x", files[path]))


def numbers_in(path: str, data: bytes) -> list[Field]:
    """Return the numbers in a file of a store, by what its path says it is."""
    if path.startswith("index/"):
        return seeds.index_fields(SLOTS, min(ENTRIES - 1, len(data) // 20))
    if path.startswith("consumequeue/"):
        return [
            Field(f"{name} of entry {at // 20}", at + place, size)
            for at in range(0, len(data) - 19, 20)
            for name, place, size in (("offset", 0, 8), ("size", 8, 4), ("tags code", 12, 8))
        ]
    if path.startswith("commitlog/"):
        fields, at = list[Field](), 0
        while (layout := record.check(data, at, len(data), crc=False)[1]) is not None:
            each = seeds.record_fields(data[at : at + layout.size])
            fields += [Field(f"{one.name} at {at}", one.at + at, one.size) for one in each]
            at += layout.size
        return fields
    if path == "checkpoint":
        return [Field(f"long {at // 8}", at, 8) for at in range(0, 48, 8)]
    return []


_FILE_NAMES = (
    segment_name(0),
    segment_name(7),
    segment_name(BASE - 20),
    segment_name(BASE + SEGMENT - 1),
    segment_name(BASE + (1 << 40)),
    segment_name((1 << 63) - 1),
    segment_name((1 << 63) - 1 - SEGMENT),
    "9" * 20,
    "1" * 17,
    "0" * 17,
    "99991231235959999",
    "+0000000000000000001",
    "\u0661" * 20,
    "x",
    ".x",
    "a\nb",
    "\x1b[31m",
    "\udcff\udcfe",
    "lock",
)
_QUEUE_NAMES = ("0", "7", "-1", "007", "65536", "2147483647", "2147483648", "9" * 30, "\u0661", "x")
