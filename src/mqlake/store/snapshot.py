"""A store directory at one moment: its log's end, its index, what was not dispatched.

Each part is found on first access, and cached. A new snapshot sees a live broker's later messages.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from mqlake.errors import FormatError, StoreError, raise_passing
from mqlake.formats import abort_file, checkpoint
from mqlake.formats.checkpoint import Checkpoint, Checksummed
from mqlake.formats.config import Topics
from mqlake.formats.dialect import Dialect
from mqlake.storage.owner_lock import LOCK_NAME
from mqlake.storage.protocol import Directory
from mqlake.store.config.config_files import read_config
from mqlake.store.incarnations.evidence import existing_topics
from mqlake.store.incarnations.table import Incarnations, find_incarnations
from mqlake.store.index.detect import Detected, detect
from mqlake.store.index.found_entries import Undispatched
from mqlake.store.index.index_files import IndexFiles
from mqlake.store.log import segments
from mqlake.store.log.end import LogEnd, find_end, last_written_start, recovery_start
from mqlake.store.log.scan import Queue, head_of
from mqlake.store.log.segments import CommitLog
from mqlake.store.queues import queue_files
from mqlake.store.queues.queue_files import QueueFiles, queue_ids, topic_names
from mqlake.store.queues.queue_kind import BATCH, batch_topics
from mqlake.store.queues.queue_view import QueueView

if TYPE_CHECKING:
    from mqlake.store.index.key_scan import KeyScan

ABORT_NAME = "abort"
CHECKPOINT_NAME = "checkpoint"

_ALWAYS_SCANNED = 8 << 20
_MOST_VIEWS = 64
_MOST_TOPICS = 4


def is_store(directory: Directory) -> bool:
    """Return whether a directory is a store: with a log, or without any message.

    A broker creates the log with the first message. A directory with queues but without a log is
    not an empty store: it lost its log.
    """
    if directory.is_directory(segments.DIRECTORY):
        return True
    was_opened = directory.exists(CHECKPOINT_NAME) or directory.exists(ABORT_NAME)
    return was_opened and not directory.names(queue_files.DIRECTORY)


class Snapshot:
    """The state of a store at one moment.

    Args:
        dialect: overrides what the files indicate.
    """

    def __init__(self, directory: Directory, log: CommitLog, dialect: Dialect | None) -> None:
        self.directory, self.log = directory, log
        self._dialect = dialect
        self._views: OrderedDict[tuple[str, int], QueueView] = OrderedDict()
        self._whole_topics: OrderedDict[str, Undispatched] = OrderedDict()

    @cached_property
    def owner(self) -> int | None:
        """The process that has the store open; None without one, 0 or less if unknown."""
        try:
            return self.directory.lock_holder(LOCK_NAME)
        except StoreError:
            return None  # Unknown: what is true after a crash is also true for a live store.

    @cached_property
    def has_abort_file(self) -> bool:
        """Return whether a broker runs on the store, or did not stop cleanly."""
        return self.directory.exists(ABORT_NAME)

    @property
    def is_crashed(self) -> bool:
        """Return whether the last broker did not stop cleanly, and none runs now."""
        return self.has_abort_file and self.owner is None

    @cached_property
    def abort_process(self) -> int | None:
        """The process id in the abort file, or None if the file does not exist."""
        try:
            return abort_file.decode(_read(self.directory, ABORT_NAME))
        except StoreError as error:
            raise_passing(error)
            return None

    @cached_property
    def _checkpoint_file(self) -> bytes:
        """The content of the checkpoint; b"" if it cannot be read."""
        try:
            return _read(self.directory, CHECKPOINT_NAME)
        except StoreError as error:
            raise_passing(error)
            return b""

    @cached_property
    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint, or None if it cannot be read."""
        try:
            return checkpoint.decode(self._checkpoint_file)
        except FormatError:
            return None

    @cached_property
    def checksummed(self) -> Checksummed | None:
        """The part of the log in which mqlake wrote every record with its checksum, or None."""
        return checkpoint.decode_checksummed(self._checkpoint_file)

    @cached_property
    def detected(self) -> Detected:
        """The dialect, and the evidence for it."""
        if self._dialect is not None:
            return Detected(self._dialect, "option")
        return detect(self.directory, self.log, self._index_files, self.checkpoint)

    @property
    def walk_start(self) -> int:
        """The start of a record from which the log's end is searched, a physical offset."""
        return self._dispatched[0]

    @cached_property
    def end(self) -> LogEnd:
        """The log's end: by RocketMQ's recovery walk, or after what was dispatched."""
        return find_end(self.log, self.walk_start)

    @cached_property
    def undispatched(self) -> Undispatched:
        """The end of the log, whose entries even whole queue files may lack.

        It begins where dispatch certainly was, or somewhat earlier: that costs little, and single
        queues may lag.
        """
        start, has_entries = self._dispatched
        end = self.end.offset
        if not has_entries or end - self.log.min_offset <= _ALWAYS_SCANNED:
            start = self.log.min_offset
        elif end - start < _ALWAYS_SCANNED:
            start = min(start, self._boundary_from(end - _ALWAYS_SCANNED))
        return Undispatched(self.log, self.incarnations, start, end)

    @cached_property
    def incarnations(self) -> Incarnations:
        """Which records of deleted topics are dead.

        In a store without a table of incarnations, or on which RocketMQ ran since, a topic that has
        neither queue files nor settings was deleted, and topics that begin again are found by a
        scan.
        """
        table, is_whole, _ = find_incarnations(self.directory)
        # How far mqlake's checkpoint says that all was dispatched; None if RocketMQ wrote it.
        resume = checkpoint.decode_resume(self._checkpoint_file)
        if (is_whole and resume is not None) or not self._dispatched[1]:
            return table
        settings = read_config(self.directory, Topics)
        named = None if settings is None else settings.topic_config_table
        existing = existing_topics(self.topics_with_files, named)
        if existing is None:
            return table
        dispatched = self._dispatched[0]
        if resume is not None and resume.position <= self.end.offset:
            dispatched = max(dispatched, resume.position)
        others = max(table.others, dispatched)
        return table.derived(dict.fromkeys(existing, 0), others)

    def has_living_files(self, topic: str) -> bool:
        """Return whether a topic has a queue directory that is not a deleted incarnation's."""
        if not self.incarnations.before(topic):
            return True
        if queue_ids(self.directory, topic, BATCH):
            return True
        ids = queue_ids(self.directory, topic)
        return not ids or any(self._open_queue(topic, queue_id).files for queue_id in ids)

    def _begin(self, topic: str) -> int:
        """Return the physical offset before which a topic's records are removed, or dead."""
        return max(self.log.min_offset, self.incarnations.before(topic))

    def _boundary_from(self, physical_offset: int) -> int:
        """Return the start of a record at or shortly after a physical offset."""
        newest = max(self._queues, key=lambda queue: queue.last_offset)
        files = QueueFiles(self.directory, *newest.queue)
        for offset, entry in files.written_from(files.first_at_or_after(physical_offset)):
            found = entry.physical_offset
            if head_of(self.log, self.end.offset, newest.queue, offset, found):
                return found
        return self.end.offset

    @cached_property
    def index(self) -> IndexFiles:
        """The plausible index files."""
        if not self.is_crashed:
            return self._index_files
        indexed_until = self.checkpoint.index_msg_timestamp if self.checkpoint else 0
        return self._index_files.after_crash(indexed_until, self._dispatched[0])

    @cached_property
    def key_scan(self) -> KeyScan:
        """Searches keys in the parts of the log that the index lacks."""
        from mqlake.store.index.key_scan import KeyScan

        return KeyScan(self.log)

    @cached_property
    def _index_files(self) -> IndexFiles:
        return IndexFiles.open(self.directory)

    @cached_property
    def topics_with_files(self) -> list[str]:
        """The topics that have a directory of queue files, of either kind."""
        return sorted({*topic_names(self.directory), *topic_names(self.directory, BATCH)})

    @cached_property
    def batch_topics(self) -> frozenset[str]:
        """The topics with batch consume queues."""
        return batch_topics(self.directory)

    @cached_property
    def queue_file_size(self) -> int | None:
        """The size of most queue files, or None without files."""
        sizes = Counter(size for queue in self._queues for size in queue.sizes)
        return max(sizes, key=lambda size: (sizes[size], size)) if sizes else None

    @cached_property
    def _queues(self) -> list[_QueueExtent]:
        return [
            _look_at(QueueFiles(self.directory, topic, queue_id), (topic, queue_id))
            for topic in self.topics_with_files
            for queue_id in queue_ids(self.directory, topic)
        ]

    @cached_property
    def _dispatched(self) -> tuple[int, bool]:
        """A record's start before which all were dispatched; and whether queue files show it."""
        if self.is_crashed:
            known = self.checkpoint or Checkpoint()
            start = recovery_start(self.log, known, self.detected.dialect)
            return start, any(queue.sizes for queue in self._queues)
        newest = self._newest_entry()
        return (last_written_start(self.log), False) if newest is None else (newest, True)

    def _newest_entry(self) -> int | None:
        """Return the greatest physical offset that the last entry of a queue correctly names."""
        for queue in sorted(self._queues, key=lambda queue: queue.last_offset, reverse=True):
            offset = queue.last_offset
            if head_of(self.log, self.log.limit, queue.queue, queue.last, offset):
                return offset
        return None

    def queue_ids(self, topic: str) -> list[int]:
        """Return the queues of a topic, ascending: those with files, or with records."""
        found = {*queue_ids(self.directory, topic), *queue_ids(self.directory, topic, BATCH)}
        source = self.undispatched if found else self._whole(topic)
        found.update(queue_id for name, queue_id in source.bounds if name == topic)
        return sorted(found)

    def queue_range(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Return a queue's min and max offset, without its entries if there are too many."""
        if self.undispatched.is_kept:
            view = self.view(topic, queue_id)
            return view.min_offset, view.max_offset
        files = self._open_queue(topic, queue_id)
        bounds = self.undispatched.bounds.get((topic, queue_id))
        ending = self._ending(files, (topic, queue_id))
        is_enough = self._source(files, ending, topic) is self.undispatched
        if bounds is None or not is_enough or self._has_batches(files, topic):
            view = self.view(topic, queue_id)
            return view.min_offset, view.max_offset
        first = files.first_at_or_after(self._begin(topic))
        low = min(first, bounds.least) if first < ending.offset else bounds.least
        return low, max(ending.offset, bounds.greatest + 1)

    def view(self, topic: str, queue_id: int) -> QueueView:
        """Return a queue; an empty one if it has neither files nor records."""
        queue = (topic, queue_id)
        view = self._views.get(queue)
        if view is None:
            view = self._views[queue] = self._make_view(topic, queue_id)
            if len(self._views) > _MOST_VIEWS:
                self._views.popitem(last=False)
        self._views.move_to_end(queue)
        return view

    def _make_view(self, topic: str, queue_id: int) -> QueueView:
        files = self._open_queue(topic, queue_id)
        ending = self._ending(files, (topic, queue_id))
        behind = self._source(files, ending, topic).entries(topic, queue_id)
        following = behind.first_from(ending.offset)
        if files.files and following and following[0] > ending.offset:
            # Entries are missing between the files and the scan.
            source = self._after(ending.physical_offset, topic)
            behind = source.entries(topic, queue_id)
        return QueueView(
            log=self.log,
            log_end=self.end.offset,
            topic=topic,
            queue_id=queue_id,
            files=files,
            end_of_files=ending.offset,
            behind=behind,
            begin=self._begin(topic),
            has_batches=self._has_batches(files, topic),
        )

    def _open_queue(self, topic: str, queue_id: int) -> QueueFiles:
        return QueueFiles(
            self.directory,
            topic,
            queue_id,
            whole_size=self.queue_file_size,
            dead_before=self.incarnations.before(topic),
        )

    def _has_batches(self, files: QueueFiles, topic: str) -> bool:
        return not files.files and topic in self.batch_topics

    def _ending(self, files: QueueFiles, queue: Queue) -> _Ending:
        """Return the end of the entries of a queue's files that name the queue's own records."""
        log, log_end, begin = self.log, self.end.offset, self._begin(queue[0])
        is_whole, written = True, files.end
        for offset, entry in files.written_before(files.end):
            if entry.physical_offset < begin:
                return _Ending(offset + 1, begin, is_whole)
            if head_of(log, log_end, queue, offset, entry.physical_offset):
                return _Ending(offset + 1, entry.physical_offset, is_whole)
            # Entries past the log's end are dropped correctly: RocketMQ does so when it recovers.
            is_whole = is_whole and entry.physical_offset >= log_end
            written = offset
        return _Ending(written, begin, is_whole)

    def _source(self, files: QueueFiles, ending: _Ending, topic: str) -> Undispatched:
        """Return the stretch of the log with records that the files of a queue may lack."""
        if not files.files:
            return self._whole(topic)
        is_enough = ending.is_whole and files.has_room
        if is_enough or ending.physical_offset >= self.undispatched.start:
            return self.undispatched
        return self._after(ending.physical_offset, topic)

    def _after(self, physical_offset: int, topic: str) -> Undispatched:
        end = self.end.offset
        return Undispatched(self.log, self.incarnations, physical_offset, end, topic)

    def _whole(self, topic: str) -> Undispatched:
        """Return the whole log, queried for one topic."""
        if self.undispatched.start <= self.log.min_offset:
            return self.undispatched
        whole = self._whole_topics.get(topic)
        if whole is None:
            whole = self._after(self.log.min_offset, topic)
            self._whole_topics[topic] = whole
            if len(self._whole_topics) > _MOST_TOPICS:
                self._whole_topics.popitem(last=False)
        return whole


class _Ending(NamedTuple):
    """The end of the files of a queue.

    Attributes:
        offset: queue offset after the last trusted entry.
        physical_offset: the record of that entry; the log's start without an entry.
        is_whole: whether no entry was left out except those past the log's end.
    """

    offset: int
    physical_offset: int
    is_whole: bool


class _QueueExtent(NamedTuple):
    """What the files of one queue say at their end."""

    sizes: list[int]
    queue: Queue
    last: int
    """Queue offset of the last entry."""
    last_offset: int
    """The physical offset in it, -1 if there is no entry."""


def _look_at(files: QueueFiles, queue: Queue) -> _QueueExtent:
    last = files.entry(files.end - 1)
    return _QueueExtent(
        [file.size for file in files.files],
        queue,
        files.end - 1,
        last.physical_offset if last else -1,
    )


def _read(directory: Directory, path: str) -> bytes:
    file = directory.open(path)
    try:
        return file.read(0, checkpoint.SIZE)
    finally:
        file.close()
