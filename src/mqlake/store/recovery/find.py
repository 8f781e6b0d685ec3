"""Find what a store directory holds: the first stage of recovery, which only reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from mqlake.formats.checkpoint import Checksummed, ResumePoint
from mqlake.formats.dialect import Dialect
from mqlake.formats.file_name import parse_index_name, parse_segment_name
from mqlake.storage.protocol import Directory
from mqlake.store.detect import detect
from mqlake.store.index import index_files
from mqlake.store.index.index_files import IndexFiles
from mqlake.store.log.scan import head_at
from mqlake.store.log.segments import CommitLog
from mqlake.store.queues.queue_files import queue_ids, topic_names
from mqlake.store.queues.queue_kind import BATCH, SIMPLE, QueueKind, batch_topics
from mqlake.store.recovery.abort_mark import was_left_open
from mqlake.store.recovery.checkpoint_file import FoundCheckpoint, find_checkpoint
from mqlake.store.recovery.queue_bytes import FoundQueue
from mqlake.store.settings import StoreSettings


@dataclass(frozen=True)
class Found:
    """What a store directory holds when it is opened.

    Attributes:
        is_clean: the last process stopped cleanly.
        checkpoint: the checkpoint, as it is in its file.
        point: the resume point, None without one that holds for this log.
        checksummed: the part of the log whose records all have checksums, None if there is none.
        is_log_lost: a crash took the log's file at the resume point, but left later ones: the log
            ends at the resume point.
        dialect: whose index rules hold.
        queues: the queues that have a directory.
        queue_file_sizes: bytes of each queue file, for each kind of queue.
        index_names: the names of the index files, ascending.
        batch_topics: the topics with batch consume queues.
    """

    is_clean: bool
    checkpoint: FoundCheckpoint
    point: ResumePoint | None
    checksummed: Checksummed | None
    is_log_lost: bool
    dialect: Dialect
    queues: tuple[FoundQueue, ...]
    queue_file_sizes: Mapping[QueueKind, int]
    index_names: tuple[str, ...]
    batch_topics: frozenset[str]

    @property
    def crosses_gaps(self) -> bool:
        """Whether the log goes on behind a missing file.

        A gap is a file whose name the disk has lost; in RocketMQ's stores, one that someone has
        lost, behind which RocketMQ goes on.
        """
        return self.point is None


def find(directory: Directory, log: CommitLog, settings: StoreSettings, *, owns_log: bool) -> Found:
    """Read what a directory holds; nothing is changed.

    Args:
        log: the directory's.
        owns_log: whether this process may cut the log and appends to it.

    Raises:
        StoreError: something that is there cannot be read.
    """
    is_clean, checkpoint = not was_left_open(directory), find_checkpoint(directory)
    point, is_log_lost = checkpoint.resume, False
    if point is not None and not _reaches(log, point):
        # The disk may have kept later files all the same. Retention removes no file that a
        # checkpoint has not left behind.
        is_log_lost = owns_log and not is_clean and 0 <= point.position < log.min_offset
        point = point if is_log_lost else None
    # Without a point it is not the log that was open here.
    checksummed = checkpoint.checksummed if owns_log and point is not None else None
    wanted = {
        SIMPLE: settings.mapped_file_size_consume_queue,
        BATCH: settings.mapper_file_size_batch_consume_queue,
    }
    sizes = {
        kind: kind.file_size(_queue_file_size(directory, kind, size))
        for kind, size in wanted.items()
    }
    topics = batch_topics(directory)
    names = directory.names(index_files.DIRECTORY)
    return Found(
        is_clean,
        checkpoint,
        point,
        checksummed,
        is_log_lost,
        _dialect(directory, log, checkpoint, point, settings),
        tuple(_queues(directory, topics)),
        sizes,
        tuple(name for name in names if parse_index_name(name) is not None),
        topics,
    )


def _reaches(log: CommitLog, point: ResumePoint) -> bool:
    """Say whether the log still has what was on the disk at the checkpoint."""
    if not log.min_offset <= point.position <= log.limit:
        return False
    if point.last_record < log.min_offset:
        return True
    head = head_at(log, point.last_record)
    return head is not None and point.last_record + head.size <= point.position


def _dialect(
    directory: Directory,
    log: CommitLog,
    checkpoint: FoundCheckpoint,
    point: ResumePoint | None,
    settings: StoreSettings,
) -> Dialect:
    if point is not None:
        return point.dialect
    found = detect(directory, log, IndexFiles.open(directory), checkpoint.fields)
    return settings.index_dialect if found.is_assumed else found.dialect


def _queues(directory: Directory, batch_topics: Collection[str]) -> Iterator[FoundQueue]:
    for kind in (SIMPLE, BATCH):
        for topic in topic_names(directory, kind):
            if kind is SIMPLE and topic in batch_topics:
                continue  # left alone, as whatever the topic was before it had batches
            for queue_id in queue_ids(directory, topic, kind):
                names = directory.names(f"{kind.directory}/{topic}/{queue_id}")
                found = (parse_segment_name(name) for name in names)
                bases = tuple(base for base in found if base is not None)
                yield FoundQueue(topic, queue_id, bases, kind)


def _queue_file_size(directory: Directory, kind: QueueKind, wanted: int) -> int:
    """Return the bytes that most queue files have; `wanted` if one has those, or none tells."""
    sizes: Counter[int] = Counter()
    for topic in topic_names(directory, kind):
        for queue_id in queue_ids(directory, topic, kind):
            path = f"{kind.directory}/{topic}/{queue_id}"
            for name in directory.names(path)[:1]:
                size = directory.size(f"{path}/{name}")
                if size == wanted:
                    return wanted
                if size >= kind.entry_size and size % kind.entry_size == 0:
                    sizes[size] += 1
    return max(sizes, key=lambda size: (sizes[size], size)) if sizes else wanted
