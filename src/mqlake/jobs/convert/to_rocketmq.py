"""Convert a Kafka log directory to a RocketMQ store.

A commit log is one sequence, so one task writes it. It merges the partitions by time, and keeps the
order of each.
"""

from __future__ import annotations

import heapq
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mqlake.errors import FormatError, JobError, StoreError
from mqlake.formats import record
from mqlake.formats.damage import Damage
from mqlake.formats.kafka.batch import Record as KafkaRecord
from mqlake.jobs.convert.log_directory import check_logs
from mqlake.jobs.convert.mapping import LATEST_STORE_TIME, MappedMessage, store_time, to_rocketmq
from mqlake.jobs.convert.report import ConvertReport
from mqlake.jobs.convert.target import attempt, written_beside
from mqlake.jobs.convert.topics import choose, for_rocketmq
from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.jobs.engine import Engine
from mqlake.kafka.isolation import Isolation
from mqlake.kafka.log.log_directory import LogDirectory
from mqlake.kafka.log.partition import Partition
from mqlake.storage.local import LocalDirectory
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.owned_store import OwnedStore

_DISPATCH_BYTES = 8 << 20
"""Bytes of log that are dispatched in one call."""

_MOST_QUEUES = 1 << 31


class LogsJob(msgspec.Struct, frozen=True):
    """Partitions of a log directory, and the directory of the new store."""

    logs: str
    partitions: list[tuple[str, int]]
    isolation: Isolation
    directory: str


class WrittenStore(msgspec.Struct, frozen=True):
    """What the task wrote, and what it could not read."""

    records: int
    size: int
    damage: list[Damage]


@reports_disk_faults
def convert_to_rocketmq(
    logs: Path,
    engine: Engine,
    *,
    out: Path,
    topics: Sequence[str] = (),
    isolation: Isolation = Isolation.READ_COMMITTED,
) -> ConvertReport:
    """Write the records of a log directory to a RocketMQ store `out`, which must be new or empty.

    Partitions become queue ids. Queue offsets count from 0 without gaps, as RocketMQ requires;
    offsets that differ are stored as `mapping` describes. Damaged batches are left out.

    Args:
        topics: only these; if empty, all except Kafka's own.

    Raises:
        StoreError: the directory cannot be read, or RocketMQ cannot hold a record.
        JobError: `out` is not empty, or a topic cannot be converted.
    """
    logs, out = logs.absolute(), out.absolute()
    names = check_logs(logs)
    chosen, left_out = choose({name.topic for name in names}, topics, for_rocketmq)
    chosen_partitions = [(name.topic, name.partition) for name in names if name.topic in chosen]
    with written_beside(out) as scratch:
        job = LogsJob(str(logs), chosen_partitions, isolation, str(scratch))
        [written] = engine.run(write_store, [job], "convert")
        _lift(scratch / "store", scratch)
    return ConvertReport(
        source=str(logs),
        output=str(out),
        to="rocketmq",
        topics=len(chosen),
        partitions=len(chosen_partitions),
        records=written.records,
        deleted_topic_messages=0,
        bytes_written=written.size,
        left_out=left_out,
        damage=written.damage,
    )


def _lift(store: Path, scratch: Path) -> None:
    """Put a directory in the place of its parent, which has nothing else."""
    beside = scratch.with_name(f"{scratch.name}.store")
    try:
        store.rename(beside)
        scratch.rmdir()
        beside.rename(scratch)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


@reports_disk_faults
def write_store(job: LogsJob) -> WrittenStore:
    """Write a whole store; the one task of `convert_to_rocketmq`."""
    damage: list[Damage] = []
    with ExitStack() as stack, attempt(Path(job.directory) / "store") as directory:
        logs = LogDirectory(LocalDirectory(job.logs))
        streams = [
            _in_time(stack.enter_context(logs.partition(*name)), name, job.isolation, damage)
            for name in job.partitions
        ]
        store = OwnedStore.open(LocalOwnedDirectory.make(directory))
        try:
            count = _write(store, heapq.merge(*streams))
            for topic, partition in job.partitions:
                _name_topic(store, topic, partition + 1)
        except BaseException:
            store.abandon()
            raise
        size = store.log.end
        store.close()
    return WrittenStore(count, size, damage)


class _Next(NamedTuple):
    """A record, which is compared by time, never by its content."""

    time: int
    topic: str
    partition: int
    number: int
    record: KafkaRecord


def _in_time(
    partition: Partition, name: tuple[str, int], isolation: Isolation, damage: list[Damage]
) -> Iterator[_Next]:
    """Yield the records of a partition in their order, with times that never decrease."""
    time = 0
    records = partition.records(isolation=isolation, on_damage=damage.append)
    for number, one in enumerate(records):
        brought = store_time(one)
        stored = one.timestamp if brought is None else brought
        time = max(time, min(stored, LATEST_STORE_TIME))
        yield _Next(time, *name, number, one)


def _write(store: OwnedStore, records: Iterator[_Next]) -> int:
    """Append records; return how many."""
    dispatched = count = 0
    for time, topic, partition, number, one in records:
        try:
            _append(store, topic, partition, number, to_rocketmq(one, number, time))
        except FormatError as error:
            raise StoreError(
                f"{topic}-{partition}, offset {one.offset}: RocketMQ cannot hold it: {error}"
            ) from None
        count += 1
        if store.log.end - dispatched >= _DISPATCH_BYTES:
            store.log.prepare_next()
            store.dispatcher.run(store.log.end)
            dispatched = store.log.end
    store.dispatcher.run(store.log.end)
    return count


def _append(
    store: OwnedStore, topic: str, queue_id: int, queue_offset: int, message: MappedMessage
) -> None:
    fields: dict[str, Any] = msgspec.structs.asdict(message) | {
        "topic": topic,
        "queue_id": queue_id,
        "queue_offset": queue_offset,
        "append_crc": store.settings.enabled_append_prop_crc,
    }
    log = store.log
    data = record.encode(**fields, physical_offset=log.end)
    if len(data) > log.largest_record:
        raise FormatError(f"it needs {len(data)} bytes; the maximum is {log.largest_record}")
    at = log.end
    log.make_room(len(data))
    if log.end != at:
        data = record.encode(**fields, physical_offset=log.end)
    log.append(data)


def _name_topic(store: OwnedStore, name: str, queues: int) -> None:
    """Make the topic known to a broker, with at least so many queues."""
    if queues >= _MOST_QUEUES:
        raise JobError(f"topic {name}: RocketMQ cannot have a queue {queues - 1}")
    topic = store.config.topics.ensure(name, queues)
    if topic.read_queue_nums < queues:
        wider = msgspec.structs.replace(topic, read_queue_nums=queues, write_queue_nums=queues)
        store.config.topics.put(wider)
