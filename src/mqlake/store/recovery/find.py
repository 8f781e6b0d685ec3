"""Find what a store directory contains: the first stage of recovery, which only reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from mqlake.formats.checkpoint import Checksummed, ResumePoint
from mqlake.formats.dialect import Dialect
from mqlake.formats.file_name import parse_index_name, parse_segment_name
from mqlake.formats.record import FRAME_SIZE
from mqlake.storage.protocol import Directory
from mqlake.store.incarnations.table import FoundIncarnations, find_incarnations
from mqlake.store.index import index_files
from mqlake.store.index.detect import detect
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
class StoreContents:
    """The contents of a store directory when it is opened.

    Attributes:
        is_clean: whether the last process stopped cleanly.
        checkpoint: the checkpoint in its file.
        point: the resume point, or None if it is missing or not valid for this log.
        checksummed: the part of the log whose records all have checksums, or None.
        is_log_lost: whether a crash lost the log's file at the resume point, but not later ones.
            If so, the log ends at the resume point.
        dialect: the RocketMQ version whose index rules apply.
        queues: the queues that have a directory.
        queue_file_sizes: bytes of each queue file, for each kind of queue.
        index_names: the names of the index files, ascending.
        batch_topics: the topics with batch consume queues.
        incarnations: which records of deleted topics are dead.
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
    incarnations: FoundIncarnations

    @property
    def crosses_gaps(self) -> bool:
        """Return whether the log continues after a missing file.

        A file is missing if the disk has lost its name. In RocketMQ's stores, it may also have been
        removed: RocketMQ continues after it.
        """
        return self.point is None


def find(
    directory: Directory, log: CommitLog, settings: StoreSettings, *, owns_log: bool
) -> StoreContents:
    """Read the contents of a directory; nothing is changed.

    Args:
        log: the log of the directory.
        owns_log: whether this process may cut the log and appends to it.

    Raises:
        StoreError: an existing file cannot be read.
    """
    is_clean, checkpoint = not was_left_open(directory), find_checkpoint(directory)
    point, is_log_lost = checkpoint.resume, False
    if point is not None and not _reaches(log, point):
        # The disk may have kept later files nevertheless. Retention removes no file that a
        # checkpoint has not passed.
        is_log_lost = owns_log and not is_clean and 0 <= point.position < log.min_offset
        point = point if is_log_lost else None
    # Without a resume point, it is not the log that was open here.
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
    return StoreContents(
        is_clean=is_clean,
        checkpoint=checkpoint,
        point=point,
        checksummed=checksummed,
        is_log_lost=is_log_lost,
        dialect=_dialect(directory, log, checkpoint, point, settings),
        queues=tuple(_queues(directory, topics)),
        queue_file_sizes=sizes,
        index_names=tuple(name for name in names if parse_index_name(name) is not None),
        batch_topics=topics,
        incarnations=find_incarnations(directory),
    )


def _reaches(log: CommitLog, point: ResumePoint) -> bool:
    """Return whether the log still has what was durable at the checkpoint."""
    if not log.min_offset <= point.position <= log.limit:
        return False
    if point.last_record < log.min_offset:
        return True
    head = head_at(log, point.last_record)
    if head is None:
        return False
    end = point.last_record + head.size
    return end == point.position or (end < point.position and not _is_cut(log, end))


def _is_cut(log: CommitLog, end: int) -> bool:
    """Return whether nothing follows a record after which the log continued: it was cut there.

    Otherwise the blank record of a file's end follows, if there is room for one.
    """
    place = log.place(end)
    if place is None or place.end - place.at < FRAME_SIZE:
        return False
    return not any(place.view[place.at : place.at + FRAME_SIZE])


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
                continue  # Not changed, like queues from before a topic had batches.
            for queue_id in queue_ids(directory, topic, kind):
                names = directory.names(f"{kind.directory}/{topic}/{queue_id}")
                found = (parse_segment_name(name) for name in names)
                bases = tuple(base for base in found if base is not None)
                yield FoundQueue(topic, queue_id, bases, kind)


def _queue_file_size(directory: Directory, kind: QueueKind, wanted: int) -> int:
    """Return the most frequent size of queue files; `wanted` if a file has it, or without files."""
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
