"""What must hold of every store that was opened after a crash.

The log is walked byte by byte, and the queues, the index and the store's answers are held against
it, in both directions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise

from mqlake.formats import sys_flag, timer_checkpoint
from mqlake.formats.batch_consume_queue import BatchQueueUnit
from mqlake.formats.consume_queue import SCHEDULE_TOPIC, QueueEntry
from mqlake.formats.properties import REAL_TOPIC
from mqlake.formats.record import Record
from mqlake.storage.protocol import Directory
from mqlake.store.delivery.timer_messages import TIMER_TOPIC
from mqlake.store.owned_store import OwnedStore
from tests.crash.expectation import BATCHES, require
from tests.crash.light_oracle import check_light
from tests.crash.log_walk import (
    Log,
    LogRecord,
    Queue,
    batch_units,
    index_entries,
    index_hashes,
    kept_bytes,
    queue_entries,
    queues_on_disk,
    walk,
)

TIMER_CHECKPOINT = "config/timercheck"

History = Mapping[int, set[bytes]]
"""All bytes that were ever a record at a physical offset."""


def check_store(store: OwnedStore, disk: Directory, history: History) -> Log:
    """Check everything that can be seen of an open store.

    Raises:
        ViolationError: something does not hold.
    """
    log = walk(disk)
    require(store.log.end == log.end, f"the log's end is {store.log.end}, not {log.end}")
    for found in log.records:
        at = found.record.physical_offset
        require(found.data in history.get(at, ()), f"a record at {at} that was never sent")
    check_queues(store, disk, log)
    if store.settings.message_index_enable:
        check_index(store, disk, log)
    check_delays(store, log)
    check_timers(disk, log)
    check_reads(store, log)
    check_light(store, log)
    return log


def check_kept(disk: Directory, before: Mapping[int, bytes]) -> None:
    """Nothing that RocketMQ takes for a record went without a copy kept aside.

    Args:
        before: what there was before the store was opened, by physical offset.
    """
    kept = [*kept_bytes(disk)]
    for offset, data in before.items():
        is_kept = any(
            start <= offset and content[offset - start :][: len(data)] == data
            for start, content in kept
        )
        require(is_kept, f"the record at {offset} was cut off and is not kept")
    names = disk.names("commitlog-cut")
    require(not [name for name in names if name.endswith(".tmp")], f"unfinished copies: {names}")


def check_queues(store: OwnedStore, disk: Directory, log: Log) -> None:
    """Each record has its entry, each entry its record, and offsets have no gaps."""
    expected: dict[Queue, dict[int, QueueEntry]] = {}
    check_batches(store, disk, log)
    for found in log.records:
        if found.record.topic == BATCHES:
            continue
        if sys_flag.is_queued(found.record.sys_flag) and not _is_dead(store, found.record):
            entries = expected.setdefault(found.queue, {})
            offset = found.record.queue_offset
            require(offset not in entries, f"{found.queue} has offset {offset} twice")
            entries[offset] = found.entry
    known = {queue for queue in store.queues.queues() if queue[0] != BATCHES}
    for queue in {*expected, *known, *queues_on_disk(disk)}:
        entries = expected.get(queue, {})
        if entries:
            least, most = min(entries), max(entries)
            require(len(entries) == most + 1 - least, f"{queue}: gaps in {sorted(entries)}")
        _check_queue(store, disk, queue, entries, log)


def _is_dead(store: OwnedStore, record: Record) -> bool:
    return store.config.incarnations.is_dead(record.topic, record.physical_offset)


def check_batches(store: OwnedStore, disk: Directory, log: Log) -> None:
    """Each record of the topic of batches has its unit, and offsets have no gaps."""
    expected: dict[Queue, list[BatchQueueUnit]] = {}
    for found in log.records:
        if found.record.topic == BATCHES:
            expected.setdefault(found.queue, []).append(found.unit)
    require(not disk.is_directory(f"consumequeue/{BATCHES}"), "batches have a simple queue")
    known = {(BATCHES, int(name)) for name in disk.names(f"batchconsumequeue/{BATCHES}")}
    for queue in {*expected, *known}:
        units = expected.get(queue, [])
        written = batch_units(disk, queue)
        live = [unit for unit in written if unit.physical_offset >= log.start]
        require(live == units, f"{queue} has {live}, the log {units}")
        for unit, after in pairwise(written):
            require(unit.end_offset == after.base_offset, f"{queue}: {after} follows {unit}")
        end = written[-1].end_offset if written else 0
        span = units[0].base_offset if units else end, end
        found_span = store.queues.min_offset(*queue), store.queues.max_offset(*queue)
        require(found_span == span, f"{queue} has {found_span}, the log {span}")
        upcoming = store.offsets.next(*queue)
        require(upcoming == end, f"{queue}: the next offset is {upcoming}, the queue's end {end}")


def _check_queue(
    store: OwnedStore, disk: Directory, queue: Queue, entries: Mapping[int, QueueEntry], log: Log
) -> None:
    least, most = store.queues.min_offset(*queue), store.queues.max_offset(*queue)
    upcoming = store.offsets.next(*queue)
    written = queue_entries(disk, queue)
    live = {at: entry for at, entry in written.items() if entry.physical_offset >= log.start}
    require(live == entries, f"{queue} has {live}, the log {dict(entries)}")
    require(upcoming == most, f"{queue}: the next offset is {upcoming}, the queue's end {most}")
    if not entries:
        require(least == most, f"{queue} is empty and has [{least}, {most})")
        return
    span = min(entries), max(entries) + 1
    require((least, most) == span, f"{queue} has [{least}, {most}), the log {span}")


def check_index(store: OwnedStore, disk: Directory, log: Log) -> None:
    """Each key of the log is in the index, and the index has no others, dead ones left out."""
    settings = store.settings
    expected = Counter(
        (key_hash, found.record.physical_offset)
        for found in log.records
        for key_hash in index_hashes(found.record, settings.index_dialect)
    )
    entries = Counter(
        entry
        for entry in index_entries(disk, settings.max_hash_slot_num, settings.max_index_num)
        if entry[1] >= log.start
    )
    require(
        entries == expected,
        f"the index lacks {dict(expected - entries)}, has {dict(entries - expected)} too many",
    )


def check_delays(store: OwnedStore, log: Log) -> None:
    """What the table of delays has as delivered was delivered, and is in the log."""
    delivered = {
        (found.record.topic, found.record.body)
        for found in log.records
        if found.record.topic != SCHEDULE_TOPIC
    }
    for found in log.records:
        if found.record.topic == SCHEDULE_TOPIC:
            level = found.record.queue_id + 1
            if found.record.queue_offset < (store.config.delay_offsets.get(level) or 0):
                message = found.record.properties[REAL_TOPIC], found.record.body
                if message[0] == SCHEDULE_TOPIC:
                    continue  # put there by hand, and delivered where it was
                require(message in delivered, f"level {level}: {found.record.queue_offset} is lost")


def check_timers(disk: Directory, log: Log) -> None:
    """What the timer checkpoint has as delivered was delivered or put again, and is in the log."""
    if not disk.exists(TIMER_CHECKPOINT):
        return
    _, position = timer_checkpoint.decode(disk.open(TIMER_CHECKPOINT).read(0, 4096))
    require(position is not None, "the timer checkpoint is damaged")
    for found in log.records:
        record = found.record
        if record.topic == TIMER_TOPIC and position and _is_settled(record, position):
            message = record.properties[REAL_TOPIC], record.body
            copies = [
                other.record
                for other in log.records
                if other.record.physical_offset > record.physical_offset
                and other.record.body == record.body
            ]
            is_there = any(copy.topic in (message[0], TIMER_TOPIC) for copy in copies)
            require(is_there, f"timer message {record.queue_offset} is lost")


def _is_settled(record: Record, position: timer_checkpoint.TimerPosition) -> bool:
    slot, offset = int(record.properties["TIMER_OUT_MS"]), record.queue_offset
    if offset < position.first_waiting:
        return True
    is_done_in_slot = slot == position.done_before and offset < position.done_in_slot
    return offset < position.taken_in and (slot < position.done_before or is_done_in_slot)


def check_reads(store: OwnedStore, log: Log) -> None:
    """Consumers get each message, once, in the order of its queue."""
    expected: dict[Queue, list[LogRecord]] = {}
    for found in log.records:
        if sys_flag.is_queued(found.record.sys_flag) and not _is_dead(store, found.record):
            expected.setdefault(found.queue, []).append(found)
    for queue, records in expected.items():
        first = records[0].record.queue_offset
        got = list(_pulled(store, queue, first))
        require(got == [found.record for found in records], f"{queue}: reads differ")


def _pulled(store: OwnedStore, queue: Queue, offset: int) -> Iterator[Record]:
    """Yield what a consumer gets that pulls a queue step by step."""
    while result := store.reads.get(*queue, offset, 1000, max_bytes=1 << 20):
        yield from result.records
        offset = result.next_offset
