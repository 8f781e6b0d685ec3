"""Convert a RocketMQ store to a Kafka log directory: each task converts a queue to a partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from mqlake.errors import FormatError
from mqlake.formats import record
from mqlake.formats.damage import Damage
from mqlake.formats.file_name import segment_name
from mqlake.formats.inner_batch import is_wrapped
from mqlake.formats.kafka import record_batch
from mqlake.formats.kafka.file_name import partition_name
from mqlake.formats.record import Record
from mqlake.jobs.convert.deleted import count_deleted
from mqlake.jobs.convert.mapping import MappedMessage, Placed, to_kafka
from mqlake.jobs.convert.report import ConvertReport
from mqlake.jobs.convert.target import attempt, written_beside
from mqlake.jobs.convert.topics import choose, for_kafka
from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.jobs.engine import Engine
from mqlake.jobs.source import StoreSource, open_source
from mqlake.kafka.write.owned_log_directory import OwnedLogDirectory
from mqlake.kafka.write.owned_partition import OwnedPartition
from mqlake.protocol.messages.inner_batches import messages_of
from mqlake.store.log import segments

BATCH_BYTES = 64 << 10
BATCH_RECORDS = 1000


class ConvertQueueJob(msgspec.Struct, frozen=True):
    """One queue of a store, and the log directory that it is written to."""

    store: str
    topic: str
    queue_id: int
    directory: str


class WrittenPartition(msgspec.Struct, frozen=True):
    """What a task wrote, and what it could not read."""

    records: int
    size: int
    damage: list[Damage]


@reports_disk_faults
def convert_to_kafka(
    store: Path, engine: Engine, *, out: Path, topics: Sequence[str] = ()
) -> ConvertReport:
    """Write the messages of a store to a Kafka log directory `out`, which must be new or empty.

    Queue ids are partitions, and queue offsets are offsets. Messages that are damaged, and those in
    no queue (half messages and those of deleted topics), are left out. Nothing in the store is
    changed.

    Args:
        topics: only these; if empty, all except RocketMQ's own.

    Raises:
        StoreError: the store cannot be read.
        JobError: `out` is not empty, or a topic cannot be converted.
    """
    store, out = store.absolute(), out.absolute()
    with written_beside(out) as scratch:
        with open_source(store) as source:
            queues, deleted = _queues(source), count_deleted(source, engine, topics)
        chosen, left_out = choose({topic for topic, _ in queues}, topics, for_kafka)
        # From here on, until all partitions are complete, the directory has no mark of a clean
        # stop, and no other process can own it.
        with OwnedLogDirectory(scratch) as logs:
            chosen_queues = [(topic, queue_id) for topic, queue_id in queues if topic in chosen]
            jobs = [ConvertQueueJob(str(store), *queue, str(scratch)) for queue in chosen_queues]
            written = engine.run(convert_queue, jobs, "convert") if jobs else []
            for queue in chosen_queues:
                logs.partition(*queue)
    return ConvertReport(
        source=str(store),
        output=str(out),
        to="kafka",
        topics=len(chosen),
        partitions=len(jobs),
        records=sum(one.records for one in written),
        deleted_topic_messages=deleted,
        bytes_written=sum(one.size for one in written),
        left_out=left_out,
        damage=[damage for one in written for damage in one.damage],
    )


@reports_disk_faults
def convert_queue(job: ConvertQueueJob) -> WrittenPartition:
    """Write one queue as a partition; the task of `convert_to_kafka`."""
    damage: list[Damage] = []
    place = Path(job.directory) / partition_name(job.topic, job.queue_id)
    with open_source(Path(job.store)) as source, attempt(place) as directory:
        records = _records(source, job, damage)
        partition: OwnedPartition | None = None
        count = size = 0
        for batch in _batches(records):
            if partition is None:
                partition = OwnedPartition(directory, log_start_offset=batch[0].offset)
            data = record_batch.encode(
                batch[0].offset, [placed.record for placed in batch], leader_epoch=0
            )
            partition.append_batches(data)
            count, size = count + len(batch), size + len(data)
        (partition or OwnedPartition(directory)).close()
    return WrittenPartition(count, size, damage)


def _queues(source: StoreSource) -> list[tuple[str, int]]:
    found = {topic for topic, _ in source.snapshot.undispatched.bounds}
    found.update(source.snapshot.topics_with_files)
    return [
        (topic, queue_id)
        for topic in sorted(found)
        for queue_id in source.snapshot.queue_ids(topic)
    ]


def _records(source: StoreSource, job: ConvertQueueJob, damage: list[Damage]) -> Iterator[Placed]:
    view = source.snapshot.view(job.topic, job.queue_id)
    following = 0
    for offset, entry in view.entries(view.min_offset):
        found = view.record(offset, entry)
        if found is None:
            damage.append(_damage(source, offset, entry.physical_offset, entry.size))
            continue
        for number, part in enumerate(_parts(found)):
            placed = to_kafka(_message(part), offset + number)
            # Offsets of an earlier conversion are kept if they increase.
            placed = placed._replace(offset=max(placed.offset, following))
            following = placed.offset + 1
            yield placed


def _parts(found: Record) -> list[Record]:
    """Return the messages of an inner batch; a batch that cannot be split is one message."""
    if not is_wrapped(found.sys_flag):
        return [found]
    try:
        return [record.decode(data) for data in messages_of(found)]
    except FormatError:
        return [found]


def _message(record: Record) -> MappedMessage:
    return MappedMessage(
        body=record.body,
        properties=record.properties,
        born_timestamp=record.born_timestamp,
        store_timestamp=record.store_timestamp,
        born_host=record.born_host,
        store_host=record.store_host,
        flag=record.flag,
        sys_flag=record.sys_flag,
        reconsume_times=record.reconsume_times,
        prepared_transaction_offset=record.prepared_transaction_offset,
    )


def _damage(source: StoreSource, offset: int, physical_offset: int, size: int) -> Damage:
    segment = source.log.segment_at(physical_offset)
    base = segment.base if segment else 0
    file = source.directory.describe(f"{segments.DIRECTORY}/{segment_name(base)}")
    reason = f"there is no good record for queue offset {offset}"
    return Damage(file, physical_offset - base, size, reason)


def _batches(records: Iterator[Placed]) -> Iterator[list[Placed]]:
    """Yield records with consecutive offsets, in groups of a suitable batch size."""
    batch: list[Placed] = []
    size = 0
    for placed in records:
        is_next = not batch or placed.offset == batch[-1].offset + 1
        if not is_next or size >= BATCH_BYTES or len(batch) == BATCH_RECORDS:
            yield batch
            batch, size = [], 0
        batch.append(placed)
        size += len(placed.record.key or b"") + len(placed.record.value or b"")
    if batch:
        yield batch
