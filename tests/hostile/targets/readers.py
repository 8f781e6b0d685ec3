"""Mutated stores, asked everything a reader can be asked."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from mqlake.errors import FormatError, MqlakeError
from mqlake.formats.file_name import is_safe_topic
from mqlake.formats.message_json import to_json
from mqlake.formats.record import Record
from mqlake.storage.memory import MemoryDirectory
from mqlake.store.reader import StoreReader
from tests.hostile import stores
from tests.hostile.cases import Case, Target, require
from tests.hostile.mutate import NAMES, NUMBERS

LONGS = tuple(number - (number >> 63 << 64) for number in NUMBERS)


class WatchedDirectory(MemoryDirectory):
    """A store in memory that refuses to be asked for a path that leaves it."""

    def names(self, path: str) -> list[str]:
        return super().names(_inside(path))

    def is_directory(self, path: str) -> bool:
        return super().is_directory(_inside(path))

    def exists(self, path: str) -> bool:
        return super().exists(_inside(path))


def _inside(path: str) -> str:
    parts = path.split("/") if path else []
    require(not {"", ".", ".."} & {*parts} and "\0" not in path, f"asked for {path!r}")
    return path


def mutated(case: Case) -> None:
    """Ask a mutated store everything."""
    for _ in range(2):
        store = stores.mutated(case)
        check(case, store)
        case.story.clear()


def check(case: Case, store: stores.Store) -> None:
    """Open a store and ask; whatever it says must be true of the log."""
    with StoreReader.open(WatchedDirectory(store.files)) as reader:
        report = reader.inspect()
        msgspec.json.encode(report)
        case.seen["damaged" if report.damage or report.commit_log.damage else "sound"] += 1
        require(reader.min_offset <= reader.max_offset, "the log ends before it starts")
        _ask_queues(case, reader)
        _ask_for(case, reader, store.records)
        _ask_for_hostile_names(case, reader)


def _ask_queues(case: Case, reader: StoreReader) -> None:
    for topic in reader.topics():
        require(is_safe_topic(topic.encode()), f"unsafe topic {topic!r}")
        for queue_id in reader.queues(topic)[:4]:
            low, high = reader.queue(topic, queue_id)
            require(low <= high, f"a queue from {low} to {high}")
            starts = (low, high, low - 1, high - 1, case.dice.choice(LONGS))
            for start in starts:
                found = reader.get(topic, queue_id, start, case.dice.choice((1, 5, 64)))
                offsets = [one.queue_offset for one in found.records]
                require(offsets == sorted({*offsets}), f"queue offsets {offsets}")
                require(all(offset >= start for offset in offsets), f"{offsets} from {start} on")
                for one in found.records:
                    place = one.topic, one.queue_id
                    require(place == (topic, queue_id), f"{place} in {topic} {queue_id}")
                    _is_in_log(reader, one)
                case.seen[found.status.value] += 1
            for time in (0, case.dice.choice(LONGS), 1_795_000_000_500):
                for boundary in ("lower", "upper"):
                    reader.offset_by_time(topic, queue_id, time, boundary)


def _ask_for(case: Case, reader: StoreReader, records: list[Record]) -> None:
    for one in case.dice.sample(records, min(4, len(records))):
        for found in (reader.record_at(one.physical_offset), reader.by_message_id(one.message_id)):
            if found:
                _is_in_log(reader, found)
        begin, end = sorted(case.dice.choice((*LONGS, one.store_timestamp)) for _ in range(2))
        if one.unique_key:
            found = reader.by_unique_key(one.topic, one.unique_key)
            require(not found or found.unique_key == one.unique_key, "another unique key")
        for key in one.keys[:2]:
            answer = reader.by_key(one.topic, key, begin, end, 3)
            require(len(answer.records) <= 3, "more than were asked for")
            for found in answer.records:
                require(key in (*found.keys, found.unique_key), f"no key {key!r}")
                _is_in_log(reader, found)
        answer = reader.by_time_range(one.topic, begin, end, 5)
        for found in answer.records:
            require(found.topic == one.topic, f"{found.topic} is not {one.topic}")
            require(begin <= found.store_timestamp <= end, "out of the time range")


def _ask_for_hostile_names(case: Case, reader: StoreReader) -> None:
    raw = case.dice.choice(NAMES)
    topic = raw.decode("utf-8", "surrogateescape")
    for ask in (
        lambda: reader.queues(topic),
        lambda: reader.queue(topic, 0),
        lambda: reader.get(topic, 0, 0),
        lambda: reader.by_key(topic, topic),
        lambda: reader.by_unique_key(topic, topic),
        lambda: reader.by_time_range(topic, 0, 1 << 62),
        lambda: reader.offset_by_time(topic, 0, 0),
    ):
        try:
            ask()
        except FormatError:
            require(not is_safe_topic(raw), f"{topic!r} was refused")
        else:
            require(is_safe_topic(raw), f"{topic!r} was taken as a topic")
    with suppress(MqlakeError):
        reader.by_message_id(topic)


def _is_in_log(reader: StoreReader, found: Record) -> None:
    to_json(found)
    again = reader.record_at(found.physical_offset)
    require(again == found, f"no such record at {found.physical_offset}")


TARGETS = (
    Target(
        "reader",
        "Small stores with mutated, missing, added and renamed files: `inspect` and every query "
        "of `StoreReader`. Each returned message is in the log and matches the query; no path "
        "leaves the store; hostile topic names of users are refused.",
        mutated,
        0.012,
    ),
)
