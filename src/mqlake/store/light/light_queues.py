"""All light queues of a store that this process writes (docs/live-store.md, "Light queues").

The entries of one topic's light queues are in one file for each segment of the log: they are a
function of this segment. Upstream: `LmqDispatch`, `RocksDBConsumeQueueStore`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mqlake.dispatch.batch import Batch
from mqlake.formats.light.light_queue_file import MOST_NAMES
from mqlake.formats.topic_names import LIGHT_PREFIX
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.incarnations.table import Incarnations
from mqlake.store.light import light_kernel
from mqlake.store.light.light_columns import MESSAGE, LightBounds, LightMessages, name_hash
from mqlake.store.light.light_file import LightFile
from mqlake.store.light.light_topics import LightTopics
from mqlake.store.light.newest_lights import NewestLight, NewestLights
from mqlake.store.light.owned_light_files import OwnedLightFiles
from mqlake.store.log.pending_sync import PendingSync

LOOKED_AT = 8
"""Newest files of a topic in which a message of a queue keeps later ones from having lower offsets.
"""
_AT_ONCE = 64 * MOST_NAMES
"""Messages that are found before their entries are appended."""

_log = logging.getLogger(__name__)

LightArrived = Callable[[Iterator[bytes]], object]
"""Called with the names of light queues that have got a message, once for each message."""


class LightPlace(NamedTuple):
    """A message of a light queue: its queue offset, and its record."""

    queue_offset: int
    physical_offset: int
    size: int


class LightQueues:
    """The light queues of a store. For one thread.

    Args:
        segment_size: bytes of a segment of the log.
        incarnations: which records of deleted topics are dead: they get no entries.
        make_seed: returns the seed of the name hashes of a store that has none yet; a random one if
            None. Who does not know it cannot choose names that share a slot.

    Attributes:
        min_physical_offset: records before it are removed.
    """

    def __init__(
        self,
        directory: OwnedDirectory,
        segment_size: int,
        incarnations: Incarnations,
        make_seed: Callable[[], int] | None = None,
    ) -> None:
        self._incarnations = incarnations
        self._files = OwnedLightFiles(directory, segment_size, make_seed)
        self._newest: dict[str, NewestLights] = {}
        self.min_physical_offset = 0
        self._arrived: LightArrived | None = None
        self._unordered: set[str] = set()
        self._kernel = light_kernel.load()
        self._topics = LightTopics()
        self._messages: LightMessages = np.zeros(_AT_ONCE, MESSAGE)

    def topics(self) -> list[str]:
        """Return the topics that have light queues, sorted."""
        return self._files.topics()

    def file(self, topic: str, base: int) -> LightFile | None:
        """Return a topic's file of the segment that starts at `base`; None without one."""
        return self._files.file(topic, base) if base in self._files.bases(topic) else None

    # Derive

    def take(self, batch: Batch) -> None:
        """Append the entries of a batch's records; those that have theirs already are skipped.

        Raises:
            DiskError: there is no room on the disk; the same call completes it.
        """
        topics, row = self._topics.of(batch.table), 0
        while row < len(batch.records):
            count, row = self._kernel.find(batch, topics, row, self._files.seed, self._messages)
            found = self._messages[:count]
            numbers: list[int] = found["topic"].tolist()
            for number in (topics_found := dict.fromkeys(numbers)):
                is_only = len(topics_found) == 1
                of_topic = found if is_only else found[found["topic"] == number]
                self._append(self._topics.name(number), batch, of_topic)

    def _append(self, topic: str, batch: Batch, messages: LightMessages) -> None:
        """Append messages of one topic."""
        bases, last = self._files.bases(topic), int(messages[-1]["physical_offset"])
        base = self._files.base_of(last)
        low = self._incarnations.before(topic)
        if bases:
            low = max(low, self._files.file(topic, bases[-1]).last_physical + 1)
        if last < low:
            return
        is_new = not bases or bases[-1] != base
        looked_at = bases[1 - LOOKED_AT :] if is_new else bases[-LOOKED_AT:]
        alive = max(self._first_of(topic), looked_at[0] if looked_at else 0)
        bounds = LightBounds(low, alive)
        newest = self._newest.get(topic)
        if newest is None:
            newest = self._newest[topic] = NewestLights(self._kernel)
        if is_new and not any(newest.accepts(message, bounds) for message in messages):
            return
        file = self._files.create(topic, base) if is_new else self._files.file(topic, base)
        accepted, row = np.zeros(len(messages), np.bool_), 0
        self._files.changed(topic, file)
        while True:
            done = file.append(self._kernel, newest.table, messages, row, bounds, accepted)
            if done.refused >= 0:
                self._warn(topic, batch, messages[done.refused])
            if (row := done.end) == len(messages):
                break
            newest.grow()
        if self._arrived is not None:
            self._arrived(_names(batch, messages[accepted]))

    def _warn(self, topic: str, batch: Batch, message: np.void) -> None:
        """Report the first record that is left out.

        A queue ascends: an offset that is not above its newest one gets no entry, and searches stay
        right whatever properties a record has.
        """
        if topic in self._unordered:
            return
        self._unordered.add(topic)
        _log.warning(
            "%s: the record at %d has offset %d of light queue %r, which has a later message: the "
            "record is left out of it, and so are others like it",
            topic,
            message["physical_offset"],
            message["queue_offset"],
            next(_names(batch, np.array([message])))[:200],
        )

    def notify(self, arrived: LightArrived) -> None:
        """Call a function for the messages that light queues get from now on."""
        self._arrived = arrived

    # Read

    def last(self, topic: str, name: bytes) -> LightPlace | None:
        """Return the newest message of a light queue, None without one.

        Args:
            topic: the topic of its records.
        """
        return self.last_of(topic, self.name_hash(name))

    def last_of(self, topic: str, name_hash: int) -> LightPlace | None:
        """Return what `last` does of the light queue with this hash of its name."""
        found = self._find(topic, name_hash)
        if found is None or found.physical_offset < self._first_of(topic):
            return None
        return LightPlace(found.queue_offset, found.physical_offset, found.size)

    @property
    def seed(self) -> int:
        """The seed of the hashes of names."""
        return self._files.seed

    def name_hash(self, name: bytes) -> int:
        """Return the hash of a light queue's name, by which it is known."""
        return name_hash(name, self._files.seed)

    def _find(self, topic: str, key: int) -> NewestLight | None:
        newest = self._newest.get(topic)
        return None if newest is None else newest.find(key)

    def end_of(self, name: str) -> int | None:
        """Return the queue offset after the newest message of a lite topic's queue; None without
        one.
        """
        topic = name[len(LIGHT_PREFIX) + 1 :].rpartition("$")[0]
        last = self.last(topic, name.encode())
        return None if last is None else last.queue_offset + 1

    def _first_of(self, topic: str) -> int:
        """Return the physical offset before which no record of a topic counts."""
        return max(self.min_physical_offset, self._incarnations.before(topic))

    def places(self, topic: str, name: bytes, queue_offset: int, count: int) -> list[LightPlace]:
        """Return up to `count` messages of a light queue from a queue offset on, ascending.

        Queue offsets that no message has are skipped, however many: a message may not have been
        put after its offset was given to it.
        """
        key, first = self.name_hash(name), self._first_of(topic)
        last = self._find(topic, key)
        if last is None or last.queue_offset < queue_offset or last.physical_offset < first:
            return []
        newest_base, starts = self._files.base_of(last.physical_offset), list[_LightStart]()
        for base in reversed(self._files.bases(topic)):
            if base > newest_base:
                continue
            file = self._files.file(topic, base)
            newest = last.number if base == newest_base else file.newest(key)
            if not newest:
                continue
            start = file.at_or_after(newest, queue_offset, first)
            if not start:
                break
            starts.append(_LightStart(base, start, newest))
            if file.entry(start).previous:
                break  # All messages before it have lower offsets, or are dead.
        found: list[LightPlace] = []
        for base, start, newest in reversed(starts):
            file = self._files.file(topic, base)
            found += _forwards(file, start, newest, count - len(found))
            if len(found) >= count:
                break
        return found[:count]

    def count(self, topic: str) -> int:
        """Return how many light queues of a topic have messages."""
        return len(self._newest.get(topic, ()))

    def heads(self, topic: str) -> Iterator[LightPlace | None]:
        """Yield the newest message of each light queue of a topic; None for others."""
        for base in list(reversed(self._files.bases(topic))):
            if base not in self._files.bases(topic):
                continue  # It was removed meanwhile.
            for key in self._files.file(topic, base).names_in_steps():
                yield self._head(topic, base, key)

    def _head(self, topic: str, base: int, key: int) -> LightPlace | None:
        """Return the newest message of a light queue if it is in a file, and counts."""
        found = self._find(topic, key)
        if found is None or self._files.base_of(found.physical_offset) != base:
            return None
        if found.physical_offset < self._first_of(topic):
            return None
        return LightPlace(found.queue_offset, found.physical_offset, found.size)

    # Remove

    def trim(self, min_physical_offset: int) -> int:
        """Remove the files of removed segments of the log; return how many.

        Raises:
            DiskError: the system refused it.
        """
        self.min_physical_offset = min_physical_offset
        removed_before = min_physical_offset - self._files.segment_size + 1
        count = 0
        for topic in self._files.topics():
            bases = [base for base in self._files.bases(topic) if base < removed_before]
            count += self._remove(topic, bases)
        return count

    def keep_newest(self, count: int) -> None:
        """Remove all files but the newest ones of each topic.

        Raises:
            DiskError: the system refused it.
        """
        for topic in self._files.topics():
            self._remove(topic, self._files.bases(topic)[:-count])

    def _remove(self, topic: str, bases: list[int]) -> int:
        try:
            for base in bases:
                self._files.remove(topic, base)
        finally:
            if bases:
                self._forget_removed(topic)
        return len(bases)

    def _forget_removed(self, topic: str) -> None:
        """Forget the light queues of a topic that were only in files that are removed."""
        bases, newest = self._files.bases(topic), self._newest.get(topic)
        if not bases:
            self._newest.pop(topic, None)
        elif newest is not None:
            newest.forget_before(bases[0])

    def end(self, topic: str) -> None:
        """Mark the light queues of a deleted topic as dead; `bury` removes their files.

        Files with records of the topic's next incarnation stay.
        """
        self._files.end(topic, self._incarnations.before(topic))
        self._forget_removed(topic)

    def bury(self) -> None:
        """Remove the files of dead light queues.

        Raises:
            DiskError: the system refused it; the same call completes it.
        """
        self._files.bury()

    def remove_all(self) -> None:
        """Remove all files: their entries are derived from the log again, or not wanted.

        Raises:
            DiskError: the disk failed.
        """
        self._files.remove_all()
        self._newest = {}

    # Recover

    def recover(self, position: int, end: int) -> int:
        """Take over the files of an earlier process; return from where entries are missing.

        Args:
            position: physical offset before which all entries are durable; -1 if that is unknown.
            end: physical offset of the log's end.

        Raises:
            DiskError: the disk failed.
        """
        light_kernel.warm_up()
        position, first = min(position, end), self.min_physical_offset
        if not self._files.adopt(position, self._first_of, first):
            return first
        for topic in self._files.topics():
            newest = self._newest[topic] = NewestLights(self._kernel)
            for base in self._files.bases(topic):
                newest.collect(self._files.file(topic, base))
        return max(position, first)

    def complete(self) -> None:
        """Note that all records so far have their entries, which are durable.

        Raises:
            DiskError: the disk failed.
        """
        self._files.complete()

    # Sync

    def pending_sync(self) -> PendingSync:
        """Return a job that makes all current entries durable, and the names of their files."""
        return self._files.pending_sync()

    def check_linked(self) -> None:
        """Check that the file that was used last was not removed.

        Raises:
            SyncError: it was removed.
        """
        self._files.check_linked()

    def close(self) -> None:
        """Close all files."""
        self._files.close()


class _LightStart(NamedTuple):
    """Where a queue's messages are read from in a file: base, and the first and the last entry."""

    base: int
    start: int
    newest: int


def _names(batch: Batch, messages: npt.NDArray[np.void]) -> Iterator[bytes]:
    """Yield the names of the light queues of messages."""
    data = batch.buffer.data
    columns = messages["name_at"].tolist(), messages["name_length"].tolist()
    for at, length in zip(*columns, strict=True):
        yield bytes(data[at : at + length])


def _forwards(file: LightFile, start: int, newest: int, count: int) -> list[LightPlace]:
    """Return a queue's messages from one of its entries on, ascending, at least `count` of them if
    there are so many.
    """
    found: list[LightPlace] = []
    while start and len(found) < count:
        entry = file.entry(start)
        upto = entry.queue_offset + count - len(found)
        following = file.at_or_after(newest, upto, entry.physical_offset)
        end = file.entry(following).previous if following > start else newest
        found += _backwards(file, end, start)
        start = following if following > start else 0
    return found


def _backwards(file: LightFile, number: int, start: int) -> list[LightPlace]:
    """Return the messages from an entry back to an earlier one of its queue, ascending."""
    found: list[LightPlace] = []
    while number >= start:
        entry = file.entry(number)
        found.append(LightPlace(entry.queue_offset, entry.physical_offset, entry.size))
        number = entry.previous if entry.previous < number else 0
    found.reverse()
    return found
