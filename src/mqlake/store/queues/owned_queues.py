"""The consume queues of a store that this process writes (docs/live-store.md).

Upstream: `ConsumeQueueStore`.
"""

from __future__ import annotations

import errno
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence

from mqlake.errors import DiskError, SyncError
from mqlake.formats import batch_consume_queue
from mqlake.storage.durable import parent
from mqlake.storage.protocol import Buffer, OwnedDirectory, WritableFile
from mqlake.store.pending_sync import PendingSync
from mqlake.store.queues.owned_batch_queue import OwnedBatchQueue
from mqlake.store.queues.owned_queue import OwnedQueue
from mqlake.store.queues.queue_kind import BATCH, SIMPLE, QueueKind

Queue = OwnedQueue | OwnedBatchQueue

_MOST_OPEN = 4096
_SHARE_OF_DESCRIPTORS = 8
_BATCH_PATH = f"{BATCH.directory}/"


class OwnedQueues:
    """All queues of a store, by topic and queue id. For one thread.

    Files are opened on demand, and the least recently used are closed.

    Args:
        file_size, batch_file_size: bytes of each file, of a simple and of a batch consume queue.

    Attributes:
        min_physical_offset: entries that point before it belong to removed messages.
        has_batches: returns whether a topic's queues are batch consume queues, when they are used
            for the first time.
        on_batches: called when a new batch consume queue exists.
    """

    def __init__(
        self,
        directory: OwnedDirectory,
        file_size: int,
        batch_file_size: int = batch_consume_queue.DEFAULT_FILE_SIZE,
    ) -> None:
        self._file_sizes = {
            SIMPLE: SIMPLE.file_size(file_size),
            BATCH: BATCH.file_size(batch_file_size),
        }
        self.min_physical_offset = 0
        self.has_batches: Callable[[str], bool] = lambda _: False
        self.on_batches: Callable[[], object] = lambda: None
        self._directory = directory
        self._queues: dict[tuple[str, int], Queue] = {}
        self._of_topic: dict[str, dict[int, Queue]] = {}
        self._open: OrderedDict[str, WritableFile] = OrderedDict()
        # Queues of deleted topics, by topic, until their files are removed.
        self._dead: dict[str, dict[int, Queue]] = {}
        # Files to sync, with the number of the last sync that had begun when they were last
        # changed. They stay here until a sync that covers them has succeeded.
        self._dirty: dict[str, int] = {}
        self._new_names: dict[str, int] = {}
        self._syncs = 0
        self._most_open = _most_open()

    def file_size_of(self, kind: QueueKind) -> int:
        """Return the bytes of each file of a kind of queue."""
        return self._file_sizes[kind]

    def adopt(self, topic: str, queue_id: int, bases: Iterable[int], end: int) -> OwnedQueue:
        """Return a simple queue that already has files.

        Args:
            bases: the positions of their first bytes within the whole queue, ascending.
            end: the queue offset at which it ends.

        Raises:
            FormatError: the topic cannot be the name of a directory.
        """
        queue = OwnedQueue(self, topic, queue_id)
        self._add(queue)
        queue.bases, queue.end = list(bases), end
        return queue

    def adopt_batches(
        self, topic: str, queue_id: int, bases: Sequence[int], count: int
    ) -> OwnedBatchQueue:
        """Return a batch consume queue that already has files.

        Args:
            bases: as for `adopt`.
            count: units up to its end.

        Raises:
            FormatError: the topic cannot be the name of a directory.
            DiskError: the system refused to read the last unit.
        """
        queue = OwnedBatchQueue(self, topic, queue_id)
        self._add(queue)
        queue.adopt(bases, count)
        return queue

    def adopt_dead(self, topic: str, queue_id: int, bases: Iterable[int], kind: QueueKind) -> None:
        """Take over files of a deleted topic, which `burial` removes.

        Raises:
            FormatError: the topic cannot be the name of a directory.
        """
        queues = self._dead.setdefault(topic, {})
        queue = queues.setdefault(queue_id, OwnedQueue(self, topic, queue_id, kind))
        queue.bases.extend(bases)

    def queue(self, topic: str, queue_id: int) -> Queue:
        """Return a queue, an empty one if it did not exist. It stays this object until its removal.

        Raises:
            FormatError: the topic cannot be the name of a directory.
            DiskError: a dead queue has its files there, and the system refused to remove them.
        """
        queue = self._queues.get((topic, queue_id))
        if queue is None:
            if topic in self._dead:
                self._make_room(topic, queue_id)
            if self.has_batches(topic):
                queue = OwnedBatchQueue(self, topic, queue_id)
                self.on_batches()
            else:
                queue = OwnedQueue(self, topic, queue_id)
            self._add(queue)
        return queue

    def existing(self, topic: str, queue_id: int) -> Queue | None:
        """Return a queue, None if it does not exist."""
        return self._queues.get((topic, queue_id))

    def _add(self, queue: Queue) -> None:
        self._queues[queue.topic, queue.queue_id] = queue
        self._of_topic.setdefault(queue.topic, {})[queue.queue_id] = queue

    def batches(self, topic: str, queue_id: int) -> OwnedBatchQueue | None:
        """Return a batch consume queue, None if it does not exist."""
        queue = self._queues.get((topic, queue_id))
        return queue if isinstance(queue, OwnedBatchQueue) else None

    def queues(self) -> list[tuple[str, int]]:
        """Return (topic, queue id) of each queue that has files, sorted."""
        return sorted(key for key, queue in self._queues.items() if queue.bases)

    def ids(self, topic: str) -> list[int]:
        """Return the ids of a topic's queues that have files, ascending."""
        return sorted(queue.queue_id for queue in self._of(topic) if queue.bases)

    def sums(self) -> tuple[int, int]:
        """Return the sums, over all queues, of the positions at which their entries end and start.

        The position of an entry of a simple queue is its queue offset.
        """
        dead = (queue for queues in self._dead.values() for queue in queues.values())
        places = [_places(queue) for queue in (*self._queues.values(), *dead)]
        return sum(each.end for each in places), sum(each.first for each in places)

    def __iter__(self) -> Iterator[Queue]:
        return iter(list(self._queues.values()))

    def append(self, topic: str, queue_id: int, queue_offset: int, entries: bytes | Buffer) -> int:
        """Put entries (20 bytes each) at an offset of a simple queue: see `OwnedQueue.append`."""
        queue = self.queue(topic, queue_id)
        return queue.append(queue_offset, entries) if isinstance(queue, OwnedQueue) else 0

    def max_offset(self, topic: str, queue_id: int) -> int:
        """Return the queue offset after the last entry; 0 if the queue does not exist."""
        queue = self._queues.get((topic, queue_id))
        return queue.end if queue else 0

    def min_offset(self, topic: str, queue_id: int) -> int:
        """Return the queue offset of the first existing message; otherwise the max offset."""
        queue = self._queues.get((topic, queue_id))
        return queue.min_offset(self.min_physical_offset) if queue else 0

    def entries(self, topic: str, queue_id: int, start: int, count: int) -> bytes | memoryview:
        """Return the entries (20 bytes each) of queue offsets from `start` on, at most `count`.

        This includes entries that are not synced yet. It returns nothing before the first file's
        start or from the end on, and nothing of a batch consume queue.
        """
        queue = self._queues.get((topic, queue_id))
        return queue.read(start, count) if isinstance(queue, OwnedQueue) else b""

    def places_in_file(self, offset: int) -> int:
        """Return how many positions the file of a simple queue's offset has, from that offset
        on.
        """
        per_file = self._file_sizes[SIMPLE] // SIMPLE.entry_size
        return per_file - offset % per_file

    # Trim

    def trim(self, min_physical_offset: int) -> int:
        """Remove files whose records all lie before a physical offset; return how many.

        A queue keeps its last file, so that its offsets continue.

        Raises:
            DiskError: the system refused it.
        """
        self.min_physical_offset = min_physical_offset
        queues = list(self._queues.values())
        return sum(queue.trim(min_physical_offset) for queue in queues if len(queue.bases) > 1)

    def end(self, topic: str, before: int | None = None) -> list[int]:
        """Let the queues of a topic be dead; `burial` removes their files.

        Holders of a queue object must look it up again.

        Args:
            before: if not None, a queue stays if its last message is at or after this physical
                offset.

        Returns:
            The ids of the dead queues.

        Raises:
            StoreError: the last entry of a queue cannot be read; nothing was done.
        """
        ended = [queue for queue in self._of(topic) if not _reaches(queue, before)]
        for queue in ended:
            del self._queues[topic, queue.queue_id]
            del self._of_topic[topic][queue.queue_id]
            self._dead.setdefault(topic, {})[queue.queue_id] = queue
        if not self._of_topic.get(topic, True):
            del self._of_topic[topic]
        return [queue.queue_id for queue in ended]

    @property
    def has_dead(self) -> bool:
        """Return whether there are queues that `burial` has to remove."""
        return bool(self._dead)

    def burial(self, topic: str | None = None) -> Iterator[None]:
        """Remove the files of dead queues, one at a time; the next sync makes it durable.

        Args:
            topic: whose queues; by default, those of all topics.

        Raises:
            DiskError: the system refused it. The same call completes it.
        """
        for name in list(self._dead) if topic is None else [topic]:
            for queue_id in list(self._dead.get(name, ())):
                yield from self._bury(name, queue_id)

    def _bury(self, topic: str, queue_id: int) -> Iterator[None]:
        # The topic may be created again between two steps: see `_make_room`.
        while queue := self._dead.get(topic, {}).get(queue_id):
            if queue.bases:
                queue.remove_file(queue.bases[0])
                yield
                continue
            self._remove_directory(queue.path)
            if topic not in self._of_topic and len(self._dead[topic]) == 1:
                path = parent(queue.path)
                self._remove_directory(path)
                self._new_names[parent(path)] = self._syncs
            self._drop_dead(topic, queue_id)

    def _make_room(self, topic: str, queue_id: int) -> None:
        """Remove the files of a dead queue now, since a new one gets its directory."""
        queue = self._dead[topic].get(queue_id)
        if queue is not None:
            for base in list(queue.bases):
                queue.remove_file(base)
            self._drop_dead(topic, queue_id)

    def _drop_dead(self, topic: str, queue_id: int) -> None:
        del self._dead[topic][queue_id]
        if not self._dead[topic]:
            del self._dead[topic]

    def _remove_directory(self, path: str) -> None:
        """Remove a directory, unless it has files that are not the store's."""
        try:
            self._directory.remove_directory(path)
        except DiskError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return
        self._new_names.pop(path, None)

    def _of(self, topic: str) -> list[Queue]:
        return list(self._of_topic.get(topic, {}).values())

    # Files, for `OwnedQueue`

    def file(self, path: str) -> WritableFile:
        """Return an open file; a file that a crash left shorter gets its size again."""
        file = self._open.get(path)
        if file is not None:
            self._open.move_to_end(path)
            return file
        file = self._directory.open_writable(path)
        size = self._file_sizes[BATCH if path.startswith(_BATCH_PATH) else SIMPLE]
        if file.size != size:
            file.close()
            self._directory.truncate(path, size)
            self._dirty[path] = self._syncs
            self.distrust_names(parent(path))
            file = self._directory.open_writable(path)
        self._keep(path, file)
        return file

    def write(self, path: str, at: int, data: bytes | Buffer) -> None:
        """Write bytes of a file, which must then be synced."""
        self._dirty[path] = self._syncs  # Even if it fails: some of it may have been written.
        self.file(path).write(at, data)

    def make_file(self, queue: OwnedQueue, base: int, size: int) -> None:
        """Create the file of a queue that begins at byte `base` of it."""
        path = queue.file_path(base)
        if not queue.bases and not self._directory.is_directory(queue.path):
            self._make_directories(queue.path)
        self._keep(path, self._directory.create(path, size))
        queue.bases.append(base)
        queue.bases.sort()
        self._dirty[path] = self._new_names[queue.path] = self._syncs

    def remove_file(self, queue: OwnedQueue, base: int) -> None:
        """Remove a file of a queue; those who have it open can still read it."""
        path = queue.file_path(base)
        # This comes first: a sync that finds it missing checks here whether it should exist.
        changed = self._dirty.pop(path, None)
        try:
            self._directory.remove(path)
        except DiskError:
            if changed is not None:
                self._dirty[path] = changed
            raise
        self._open.pop(path, None)
        self._new_names[queue.path] = self._syncs

    def distrust_names(self, path: str) -> None:
        """Include the names in a directory, and its own name, in the next sync.

        Names of files that a killed process left may not be durable.
        """
        while path:
            self._new_names[path] = self._syncs
            path = parent(path)
        self._new_names[""] = self._syncs

    def _make_directories(self, path: str) -> None:
        if path and not self._directory.is_directory(path):
            self._make_directories(parent(path))
            self._directory.make_directory(path)
            self._new_names[parent(path)] = self._syncs

    def _keep(self, path: str, file: WritableFile) -> None:
        self._open[path] = file
        if len(self._open) > self._most_open:
            # The file is not closed: a sync may be running. The last user closes it.
            self._open.popitem(last=False)

    # Sync

    def pending_sync(self) -> PendingSync:
        """Return a job that makes all current entries durable, and the names of their files."""
        files = [self._open.get(path) or self._closed_file(path) for path in self._dirty]
        # The deepest directory comes first: a name is worth nothing before its target is durable.
        names = sorted(self._new_names, key=lambda path: -path.count("/"))
        self._syncs = number = self._syncs + 1

        def done() -> None:
            self._dirty = _later(self._dirty, number)
            self._new_names = _later(self._new_names, number)

        return PendingSync(self._directory, files, names, done)

    def _closed_file(self, path: str) -> _ClosedFile:
        return _ClosedFile(self._directory, path, lambda: path in self._dirty)

    def check_linked(self) -> None:
        """Check that the file that was used last was not removed.

        The others are checked when they are synced.

        Raises:
            SyncError: it was removed.
        """
        if self._open:
            self._open[next(reversed(self._open))].check_linked()

    def sync(self) -> None:
        """Return once all entries, and the names of their files, are durable.

        Raises:
            DiskError: the disk failed; nothing since the last sync may be considered durable.
        """
        self.pending_sync().complete()

    def close(self) -> None:
        """Close all files."""
        for file in self._open.values():
            file.close()
        self._open.clear()


def _places(queue: Queue) -> OwnedQueue:
    return queue.places if isinstance(queue, OwnedBatchQueue) else queue


def _reaches(queue: Queue, physical_offset: int | None) -> bool:
    """Return whether the last message of a queue is at or after a physical offset."""
    if physical_offset is None:
        return False
    places = _places(queue)
    last = places.entry(places.end - 1)
    return last is not None and last.physical_offset >= physical_offset


def _most_open() -> int:
    """Return how many files may be open: a share of the process's descriptors."""
    try:
        import resource
    except ImportError:  # This is not a POSIX system.
        return 64
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_OPEN if soft < 0 else max(16, min(_MOST_OPEN, soft // _SHARE_OF_DESCRIPTORS))


def _later(changes: dict[str, int], sync: int) -> dict[str, int]:
    """Return the changes that a sync does not cover."""
    return {path: begun for path, begun in changes.items() if begun >= sync}


class _ClosedFile:
    """A file that is open only while it is synced.

    Args:
        is_kept: returns, in any thread, whether the store has not removed the file.
    """

    def __init__(self, directory: OwnedDirectory, path: str, is_kept: Callable[[], bool]) -> None:
        self._directory, self._path, self._is_kept = directory, path, is_kept

    def sync(self) -> None:
        try:
            file = self._directory.open_writable(self._path)
        except DiskError as error:
            if error.errno != errno.ENOENT:
                raise
            if self._is_kept():
                raise SyncError(
                    f"{error}: the file was removed while it was in use; restart the store, "
                    "which derives it from the log again",
                    errno.ENOENT,
                ) from error
            return  # It was trimmed meanwhile.
        try:
            file.sync()
        finally:
            file.close()
