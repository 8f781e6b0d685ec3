"""What retention would do to a store now, whichever process has it open; nothing is changed.

JSON has the same names in camel case. Offsets and lengths are bytes, timestamps milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo

import msgspec

from mqlake.errors import FormatError
from mqlake.formats import batch_consume_queue
from mqlake.formats.batch_consume_queue import UNIT_SIZE
from mqlake.formats.config import ConsumerOffsets
from mqlake.formats.config.consumer_offset import TOPIC_GROUP_SEPARATOR
from mqlake.formats.file_name import check_topic_name, parse_segment_name
from mqlake.storage.protocol import DiskUsage, OwnedDirectory
from mqlake.store.config.config_files import read_config
from mqlake.store.index.index_files import IndexFiles
from mqlake.store.log.segments import open_log
from mqlake.store.queues.queue_files import DIRECTORY, QueueFiles, queue_ids, topic_names
from mqlake.store.queues.queue_kind import BATCH
from mqlake.store.reader import StoreReader
from mqlake.store.retention import plan as retention_plan
from mqlake.store.retention.plan import (
    DerivedFile,
    Moment,
    Removal,
    SegmentFile,
    plan_derived,
    plan_log,
    ratios,
)
from mqlake.store.settings import StoreSettings


class UnreadReport(msgspec.Struct, frozen=True, rename="camel"):
    """Messages of a topic that would be removed before a consumer group has read them."""

    group: str
    topic: str
    messages: int


class RetentionReport(msgspec.Struct, frozen=True, rename="camel"):
    """What would be removed at the time `at`, and the state of the store.

    Attributes:
        is_time: whether that is within an hour of `deleteWhen`.
        next_time: the first such time from `at` on.
        used_percent: of the disk, before anything is removed.
        not_writable: why a broker accepts no messages meanwhile, None if it does.
        min_offset, max_offset: of the log, before the removal.
        new_min_offset: of the log, after the removal.
        files: the files to remove, the log's files first; `deleteFileBatchMax` of those in one
            round.
        length: the size of these files in bytes.
        unread: what consumer groups would lose.
        warnings: one line each.
    """

    store: str
    at: int
    is_time: bool
    next_time: int | None
    file_reserved_time: int
    delete_when: str
    used_percent: int
    most_used_percent: int
    clean_forcibly_percent: int
    warning_percent: int
    not_writable: str | None
    min_offset: int
    max_offset: int
    new_min_offset: int
    files: list[Removal]
    length: int = msgspec.field(name="bytes")
    unread: list[UnreadReport]
    warnings: list[str]


def plan_store(
    directory: OwnedDirectory,
    settings: StoreSettings,
    at: int,
    usage: DiskUsage | None = None,
    zone: tzinfo | None = None,
) -> RetentionReport:
    """Return what retention would do to a store.

    Args:
        at: the time of the plan, in milliseconds since 1970.
        usage: the usage of the disk; by default, it is measured.
        zone: the time zone of `deleteWhen`; by default, this machine's.

    Raises:
        StoreError: the directory is not a store, or `deleteWhen` is not hours of the day.
    """
    is_time = retention_plan.is_time(settings, at, zone)
    with StoreReader.open(directory) as reader:
        moment = Moment(at, is_time, usage or directory.usage())
        files, end = list(_log_files(directory)), reader.max_offset
        plan = plan_log(settings, moment, files, end)
    min_offset = files[0].base if files else 0
    derived = list(_derived(directory, plan.min_offset)) if plan.removals else []
    removals = [*plan.removals, *derived]
    return RetentionReport(
        store=directory.describe(),
        at=at,
        is_time=is_time,
        next_time=retention_plan.next_time(settings, at, zone),
        file_reserved_time=settings.file_reserved_time,
        delete_when=settings.delete_when,
        used_percent=plan.used_percent,
        most_used_percent=ratios(settings).most_used,
        clean_forcibly_percent=ratios(settings).clean_forcibly,
        warning_percent=ratios(settings).warning,
        not_writable=plan.not_writable,
        min_offset=min_offset,
        max_offset=end,
        new_min_offset=plan.min_offset,
        files=removals,
        length=sum(removal.size for removal in removals),
        unread=list(_unread(directory, min_offset, plan.min_offset)),
        warnings=plan.warnings,
    )


def _log_files(directory: OwnedDirectory) -> Iterator[SegmentFile]:
    for segment in open_log(directory).segments:
        size = segment.end - segment.base
        yield SegmentFile(segment.path, segment.base, size, directory.modified(segment.path))


def _derived(directory: OwnedDirectory, min_offset: int) -> Iterator[Removal]:
    for topic in topic_names(directory):
        for queue_id in queue_ids(directory, topic):
            yield from plan_derived(
                list(_queue(directory, topic, queue_id, min_offset)), min_offset
            )
    for topic in topic_names(directory, BATCH):
        for queue_id in queue_ids(directory, topic, BATCH):
            path = f"{BATCH.directory}/{topic}/{queue_id}"
            files = list(_batch_queue(directory, path, min_offset))
            yield from plan_derived(files, min_offset)
    index = [
        DerivedFile(file.path, len(file.view), file.header.end_physical_offset)
        for file in IndexFiles.open(directory).files
    ]
    yield from plan_derived(index, min_offset)


def _queue(
    directory: OwnedDirectory, topic: str, queue_id: int, min_offset: int
) -> Iterator[DerivedFile]:
    queue = QueueFiles(directory, topic, queue_id)
    for file in queue.files:
        last = queue.entry(file.end - 1)
        # Without a last entry, nothing shows that the file is finished.
        offset = last.physical_offset if last else min_offset
        yield DerivedFile(f"{DIRECTORY}/{topic}/{queue_id}/{file.name}", file.size, offset)


def _batch_queue(directory: OwnedDirectory, path: str, min_offset: int) -> Iterator[DerivedFile]:
    for name in directory.names(path):
        if parse_segment_name(name) is None:
            continue
        file = directory.open(f"{path}/{name}")
        data = file.read(max(0, file.size - UNIT_SIZE), UNIT_SIZE)
        last = batch_consume_queue.decode(data) if len(data) == UNIT_SIZE else None
        is_done = last is not None and batch_consume_queue.is_written(last)
        offset = last.physical_offset if last and is_done else min_offset
        yield DerivedFile(f"{path}/{name}", file.size, offset)
        file.close()


def _unread(directory: OwnedDirectory, start: int, end: int) -> Iterator[UnreadReport]:
    """Yield what can no longer be read if [start, end) of the log is removed."""
    table = read_config(directory, ConsumerOffsets) if start < end else None
    for key, offsets in sorted(table.offset_table.items()) if table else ():
        topic, _, group = key.partition(TOPIC_GROUP_SEPARATOR)
        try:
            check_topic_name(topic)
        except FormatError:
            continue
        lost = 0
        for queue_id, offset in offsets.items():
            queue = QueueFiles(directory, topic, queue_id)
            first = max(offset, queue.first_at_or_after(start))
            lost += max(0, queue.first_at_or_after(end) - first)
        if lost:
            yield UnreadReport(group, topic, lost)
