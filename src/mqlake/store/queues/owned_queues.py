"""The consume queues of a store that this process writes (docs/live-store.md).

Upstream: `ConsumeQueueStore`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from mqlake.formats import batch_consume_queue
from mqlake.storage.durable import parent
from mqlake.storage.protocol import Buffer, OwnedDirectory
from mqlake.store.queues.owned_batch_queue import OwnedBatchQueue
from mqlake.store.queues.owned_queue import OwnedQueue
from mqlake.store.queues.owned_queue_files import OwnedQueueFiles
from mqlake.store.queues.queue_kind import SIMPLE, QueueKind

Queue = OwnedQueue | OwnedBatchQueue


class OwnedQueues:
    """All queues of a store, by topic and queue id. For one thread.

    Args:
        file_size, batch_file_size: bytes of each file, of a simple and of a batch consume queue.
        has_batches: returns whether a topic's queues are batch consume queues, when they are used
            for the first time.

    Attributes:
        files: their files.
        min_physical_offset: entries that point before it belong to removed messages.
    """

    def __init__(
        self,
        directory: OwnedDirectory,
        file_size: int,
        batch_file_size: int = batch_consume_queue.DEFAULT_FILE_SIZE,
        has_batches: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.files = OwnedQueueFiles(directory, file_size, batch_file_size)
        self._per_file = self.files.file_size_of(SIMPLE) // SIMPLE.entry_size
        self.min_physical_offset = 0
        self._has_batches = has_batches
        self._on_batches: Callable[[], object] | None = None
        self._queues: dict[tuple[str, int], Queue] = {}
        self._of_topic: dict[str, dict[int, Queue]] = {}
        # Queues of deleted topics, by topic, until their files are removed.
        self._dead: dict[str, dict[int, Queue]] = {}

    def serve(self, has_batches: Callable[[str], bool], on_batches: Callable[[], object]) -> None:
        """Serve a live store from now on, which creates queues.

        Args:
            has_batches: as for the constructor.
            on_batches: called when a new batch consume queue exists.
        """
        self._has_batches, self._on_batches = has_batches, on_batches

    def begin_at(self, min_physical_offset: int) -> None:
        """Note where the log begins: entries that point before it belong to removed messages."""
        self.min_physical_offset = min_physical_offset

    def adopt(self, topic: str, queue_id: int, bases: Iterable[int], end: int) -> OwnedQueue:
        """Return a simple queue that already has files.

        Args:
            bases: the positions of their first bytes within the whole queue, ascending.
            end: the queue offset at which it ends.

        Raises:
            FormatError: the topic cannot be the name of a directory.
        """
        queue = OwnedQueue(self.files, topic, queue_id)
        self._add(queue)
        queue.adopt(bases, end)
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
        queue = OwnedBatchQueue(self.files, topic, queue_id)
        self._add(queue)
        queue.adopt(bases, count)
        return queue

    def adopt_dead(self, topic: str, queue_id: int, bases: Iterable[int], kind: QueueKind) -> None:
        """Take over files of a deleted topic, which `burial` removes.

        Raises:
            FormatError: the topic cannot be the name of a directory.
        """
        queues = self._dead.setdefault(topic, {})
        queue = queues.setdefault(queue_id, OwnedQueue(self.files, topic, queue_id, kind))
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
            if self._has_batches(topic):
                queue = OwnedBatchQueue(self.files, topic, queue_id)
                if self._on_batches is not None:
                    self._on_batches()
            else:
                queue = OwnedQueue(self.files, topic, queue_id)
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
        return self._per_file - offset % self._per_file

    # Trim

    def trim(self, min_physical_offset: int) -> int:
        """Remove files whose records all lie before a physical offset; return how many.

        A queue keeps its last file, so that its offsets continue.

        Raises:
            DiskError: the system refused it.
        """
        self.begin_at(min_physical_offset)
        queues = list(self._queues.values())
        return sum(queue.trim(min_physical_offset) for queue in queues if len(queue.bases) > 1)

    def end(self, topic: str, before: int | None = None) -> list[int]:
        """Mark the queues of a topic as dead; `burial` removes their files.

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
            self.files.remove_directory(queue.path)
            if topic not in self._of_topic and len(self._dead[topic]) == 1:
                path = parent(queue.path)
                self.files.remove_directory(path)
                self.files.distrust_name(path)
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

    def _of(self, topic: str) -> list[Queue]:
        return list(self._of_topic.get(topic, {}).values())


def _places(queue: Queue) -> OwnedQueue:
    return queue.places if isinstance(queue, OwnedBatchQueue) else queue


def _reaches(queue: Queue, physical_offset: int | None) -> bool:
    """Return whether the last message of a queue is at or after a physical offset."""
    if physical_offset is None:
        return False
    places = _places(queue)
    last = places.entry(places.end - 1)
    return last is not None and last.physical_offset >= physical_offset
