"""All light queues of a store that this process writes (docs/live-store.md, "Light queues").

The entries of one topic's light queues are in one file for each segment of the log: they are a
function of this segment. Upstream: `LmqDispatch`, `RocksDBConsumeQueueStore`.
"""

from __future__ import annotations

import errno
import logging
import secrets
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import NamedTuple

from mqlake.dispatch.batch import Batch
from mqlake.errors import DiskError, FormatError
from mqlake.formats.file_name import check_topic_name, parse_segment_name
from mqlake.formats.light import light_queue_file
from mqlake.formats.light.light_queue_file import LightHeader
from mqlake.formats.topic_names import LIGHT_PREFIX
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.incarnations.table import Incarnations
from mqlake.store.light.light_counts import LightCounts, counts_of_files
from mqlake.store.light.light_directory import DIRECTORY, found_seed, light_path
from mqlake.store.light.light_file import LightAppend, LightFile
from mqlake.store.light.light_records import LightRecord, light_records
from mqlake.store.light.open_lights import OpenLights
from mqlake.store.light.unsynced_lights import UnsyncedLights
from mqlake.store.log.pending_sync import PendingSync

COMPLETE = f"{DIRECTORY}/complete"
"""Exists once all records before the checkpoint have their entries."""
LOOKED_AT = 8
"""Newest files of a topic in which a message of a queue keeps later ones from having lower offsets.
"""

_log = logging.getLogger(__name__)

LightArrived = Callable[[bytes], object]
"""Called with the name of each light queue that has got a message."""


class LightPlace(NamedTuple):
    """A message of a light queue: its queue offset, and its record."""

    queue_offset: int
    physical_offset: int
    size: int


class _LightArrival(NamedTuple):
    """A light queue that gets a message.

    Attributes:
        before: base of the file with the queue's newest message so far; None without one.
    """

    name: bytes
    name_hash: int
    queue_offset: int
    before: int | None


class LightQueues:
    """The light queues of a store. For one thread.

    Args:
        segment_size: bytes of a segment of the log.
        incarnations: which records of deleted topics are dead: they get no entries.
        make_seed: returns the seed of the name hashes of a store that has none yet. Who does not
            know it cannot choose names that share a slot.

    Attributes:
        min_physical_offset: records before it are removed.
    """

    def __init__(
        self,
        directory: OwnedDirectory,
        segment_size: int,
        incarnations: Incarnations,
        make_seed: Callable[[], int] = lambda: secrets.randbits(64),
    ) -> None:
        self._directory, self._segment_size = directory, segment_size
        self._incarnations, self._make_seed = incarnations, make_seed
        self._seed: int | None = None
        self._bases: dict[str, list[int]] = {}
        self._open = OpenLights(directory, light_queue_file.capacity_of(segment_size))
        self._unsynced = UnsyncedLights(directory)
        self._ended: set[tuple[str, int]] = set()
        self.min_physical_offset = 0
        self._arrived: LightArrived | None = None
        self._unordered: set[str] = set()
        self._counts = LightCounts()

    # Files

    def topics(self) -> list[str]:
        """Return the topics that have light queues, sorted."""
        return sorted(self._bases)

    def _files(self, topic: str) -> Iterator[LightFile]:
        """Yield a topic's files, newest first."""
        for base in reversed(self._bases.get(topic, ())):
            yield self._open.file(topic, base)

    def file(self, topic: str, base: int) -> LightFile | None:
        """Return a topic's file of the segment that starts at `base`; None without one."""
        return self._open.file(topic, base) if base in self._bases.get(topic, ()) else None

    def _current(self, topic: str, physical_offset: int) -> LightFile:
        """Return the file of a record, created if it does not exist.

        Raises:
            DiskError: there is no room on the disk.
        """
        base = physical_offset // self._segment_size * self._segment_size
        bases = self._bases.get(topic)
        if bases and bases[-1] == base:
            return self._open.file(topic, base)
        return self._create(check_topic_name(topic), base)

    def _create(self, topic: str, base: int) -> LightFile:
        for path in (DIRECTORY, f"{DIRECTORY}/{topic}"):
            if not self._directory.is_directory(path):
                self._directory.make_directory(path)
                self._unsynced.renamed(path.rpartition("/")[0])
        size = light_queue_file.file_size(self._segment_size)
        file = self._directory.create(light_path(topic, base), size)
        self._ended.discard((topic, base))
        slots = light_queue_file.slots_of(self._segment_size)
        made = self._open.add(topic, file, LightHeader(base, self.seed, slots, 1, 0))
        made.begin()
        self._bases.setdefault(topic, []).append(base)
        self._unsynced.changed(topic, made)
        self._unsynced.renamed(f"{DIRECTORY}/{topic}")
        return made

    @property
    def seed(self) -> int:
        """The seed of the hashes of names."""
        if self._seed is None:
            self._seed = self._make_seed()
        return self._seed

    # Derive

    def take(self, batch: Batch) -> None:
        """Append the entries of a batch's records; those that have theirs already are skipped.

        Raises:
            DiskError: there is no room on the disk; the same call completes it.
        """
        for record in light_records(batch):
            self._take(record)

    def _take(self, record: LightRecord) -> None:
        topic = record.topic.decode()
        if self._incarnations.is_dead(topic, record.physical_offset):
            return
        arrivals = self._ascending(topic, record)
        if not arrivals:
            return
        file = self._current(topic, record.physical_offset)
        entries = [LightAppend(each.name_hash, each.queue_offset) for each in arrivals]
        kept = file.append(record.physical_offset, record.size, entries)
        self._unsynced.changed(topic, file)
        for each in arrivals[:kept]:
            self._counts.arrived(topic, file.base, each.before)
        if self._arrived is not None:
            for each in arrivals:
                self._arrived(each.name)

    def _ascending(self, topic: str, record: LightRecord) -> list[_LightArrival]:
        """Return the light queues in which a record gets an entry; none if it has them.

        A queue ascends: an offset that is not above its newest one gets none, and searches stay
        right whatever properties a record has.
        """
        newest = next(self._files(topic), None)
        if newest is not None and record.physical_offset <= newest.last_physical:
            return []
        found = list[_LightArrival]()
        for name, offset in zip(record.names, record.offsets, strict=True):
            name_hash = self._hash(name)
            file, last = self._newest(topic, name_hash)
            if file is not None and last is not None and file.base < self._looked_at_from(topic):
                last = None
            if last is None or offset > last.queue_offset:
                before = None if file is None else file.base
                found.append(_LightArrival(name, name_hash, offset, before))
            elif topic not in self._unordered:
                self._unordered.add(topic)
                _log.warning(
                    "%s: the record at %d has offset %d of light queue %r, which has a message at "
                    "%d: the record is left out of it, and so are others like it",
                    topic,
                    record.physical_offset,
                    offset,
                    name[:200],
                    last.queue_offset,
                )
        return found

    def _looked_at_from(self, topic: str) -> int:
        return self._bases[topic][-LOOKED_AT:][0]

    def notify(self, arrived: LightArrived) -> None:
        """Call a function for each message that a light queue gets from now on."""
        self._arrived = arrived

    def _hash(self, name: bytes) -> int:
        return name_hash(name, self.seed)

    # Read

    def last(self, topic: str, name: bytes) -> LightPlace | None:
        """Return the newest message of a light queue, None without one.

        Args:
            topic: the topic of its records.
        """
        return self._newest(topic, self._hash(name))[1]

    def _newest(self, topic: str, name_hash: int) -> tuple[LightFile | None, LightPlace | None]:
        """Return the newest file that has a light queue, and its newest message if it counts."""
        for file in self._files(topic):
            if number := file.newest(name_hash):
                entry = file.entry(number)
                place = LightPlace(entry.queue_offset, entry.physical_offset, entry.size)
                return file, place if place.physical_offset >= self._first_of(topic) else None
        return None, None

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
        first, starts = self._first_of(topic), list[tuple[int, int, int]]()
        name_hash = self._hash(name)
        for file in self._files(topic):
            newest = file.newest(name_hash)
            if not newest:
                continue
            start = file.at_or_after(newest, queue_offset, first)
            if not start:
                break
            starts.append((file.base, start, newest))
            if file.entry(start).previous:
                break  # All messages before it have lower offsets, or are dead.
        found: list[LightPlace] = []
        for base, start, newest in reversed(starts):
            found += _forwards(self._open.file(topic, base), start, newest, count - len(found))
            if len(found) >= count:
                break
        return found[:count]

    def count(self, topic: str) -> int:
        """Return how many light queues of a topic have messages."""
        return self._counts.count(topic)

    def heads(self, topic: str) -> Iterator[LightPlace | None]:
        """Yield the newest message of each light queue of a topic; None for others."""
        for base in list(reversed(self._bases.get(topic, ()))):
            if base not in self._bases.get(topic, ()):
                continue  # It was removed meanwhile.
            for name_hash in self._open.file(topic, base).names_in_steps():
                file, place = self._newest(topic, name_hash)
                yield None if file is None or file.base != base else place

    # Remove

    def trim(self, min_physical_offset: int) -> int:
        """Remove the files of removed segments of the log; return how many.

        Raises:
            DiskError: the system refused it.
        """
        self.min_physical_offset = min_physical_offset
        gone = [
            (topic, base)
            for topic, bases in self._bases.items()
            for base in bases
            if base + self._segment_size <= min_physical_offset
        ]
        for topic, base in gone:
            self._remove(topic, base)
        return len(gone)

    def _remove(self, topic: str, base: int) -> None:
        self._directory.remove(light_path(topic, base))
        self._forget(topic, base)
        self._unsynced.renamed(f"{DIRECTORY}/{topic}")

    def _forget(self, topic: str, base: int) -> None:
        self._open.forget(topic, base)
        self._unsynced.forget(topic, base)
        self._counts.removed(topic, base)
        bases = self._bases[topic]
        bases.remove(base)
        if not bases:
            del self._bases[topic]

    def keep_newest(self, count: int) -> None:
        """Remove all files but the newest ones of each topic.

        Raises:
            DiskError: the system refused it.
        """
        for topic, bases in list(self._bases.items()):
            for base in bases[:-count]:
                self._remove(topic, base)

    def end(self, topic: str) -> None:
        """Let the light queues of a deleted topic be dead; `bury` removes their files.

        Files with records of the topic's next incarnation stay.
        """
        before = self._incarnations.before(topic)
        for base in list(self._bases.get(topic, ())):
            if self._open.file(topic, base).last_physical < before:
                self._forget(topic, base)
                self._ended.add((topic, base))

    def bury(self) -> None:
        """Remove the files of dead light queues.

        Raises:
            DiskError: the system refused it; the same call completes it.
        """
        for topic, base in sorted(self._ended):
            self._directory.remove(light_path(topic, base))
            self._ended.discard((topic, base))
            self._unsynced.renamed(f"{DIRECTORY}/{topic}")
            if topic not in self._bases and not any(name == topic for name, _ in self._ended):
                self._remove_directory(topic)

    def _remove_directory(self, topic: str) -> None:
        try:
            self._directory.remove_directory(f"{DIRECTORY}/{topic}")
        except DiskError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return
        self._unsynced.forget_names(f"{DIRECTORY}/{topic}")
        self._unsynced.renamed(DIRECTORY)

    # Recover

    def recover(self, position: int, end: int) -> int:
        """Take over the files of an earlier process; return from where entries are missing.

        Args:
            position: physical offset before which all entries are durable; -1 if that is unknown.
            end: physical offset of the log's end.

        Raises:
            DiskError: the disk failed.
        """
        directory = self._directory
        if position < 0 or not directory.exists(COMPLETE):
            self._seed = found_seed(self._directory)
            self.remove_all()
            return self.min_physical_offset
        position = min(position, end)
        for topic in directory.names(DIRECTORY):
            if directory.is_directory(f"{DIRECTORY}/{topic}") and not self._adopt(topic, position):
                self._seed = found_seed(self._directory)
                self.remove_all()
                return self.min_physical_offset
        return max(position, self.min_physical_offset)

    def _adopt(self, topic: str, position: int) -> bool:
        """Take over a topic's files; return whether all of them can be read."""
        before = self._first_of(topic)
        for name in self._directory.names(f"{DIRECTORY}/{topic}"):
            base = parse_segment_name(name)
            if base is None:
                continue
            self._unsynced.renamed(f"{DIRECTORY}/{topic}")
            if base >= position or base + self._segment_size <= self.min_physical_offset:
                self._directory.remove(light_path(topic, base))
                continue
            self._bases.setdefault(topic, []).append(base)
            try:
                file = self._open.file(topic, base)
            except FormatError:
                return False
            if not self._is_usable(file):
                return False
            self._seed = file.seed if self._seed is None else self._seed
            if file.seed != self._seed:
                return False
            if base + self._segment_size > position:
                file.keep_before(position)
                self._unsynced.changed(topic, file)
            if file.last_physical < before or not file.count:
                self._remove(topic, base)
        self._counts.adopt(topic, counts_of_files(list(self._files(topic))))
        return True

    def _is_usable(self, file: LightFile) -> bool:
        size = light_queue_file.file_size(self._segment_size)
        slots = light_queue_file.slots_of(self._segment_size)
        return file.file.size == size and file.header.slots == slots

    def remove_all(self) -> None:
        """Remove all files: their entries are derived from the log again, or not wanted.

        Raises:
            DiskError: the disk failed.
        """
        directory = self._directory
        if not directory.is_directory(DIRECTORY):
            return
        directory.remove(COMPLETE)
        directory.sync_directory(DIRECTORY)
        self._bases, self._counts = {}, LightCounts()
        self._open.clear()
        self._unsynced.clear()
        for topic in directory.names(DIRECTORY):
            path = f"{DIRECTORY}/{topic}"
            if not directory.is_directory(path):
                continue
            for name in directory.names(path):
                if parse_segment_name(name) is not None:
                    directory.remove(f"{path}/{name}")
            self._unsynced.renamed(path)

    def complete(self) -> None:
        """Note that all records so far have their entries, which are durable.

        Raises:
            DiskError: the disk failed.
        """
        self.pending_sync().complete()
        directory = self._directory
        if not directory.exists(COMPLETE):
            if not directory.is_directory(DIRECTORY):
                directory.make_directory(DIRECTORY)
            directory.create(COMPLETE, 0).close()
        directory.sync_directory(DIRECTORY)
        directory.sync_directory("")

    # Sync

    def pending_sync(self) -> PendingSync:
        """Return a job that makes all current entries durable, and the names of their files."""
        return self._unsynced.pending_sync()

    def check_linked(self) -> None:
        """Check that the file that was used last was not removed.

        Raises:
            SyncError: it was removed.
        """
        self._open.check_linked()

    def close(self) -> None:
        """Close all files."""
        self._open.close()
        self._unsynced.clear()


def name_hash(name: bytes, seed: int) -> int:
    """Return the hash of a light queue's name."""
    key = seed.to_bytes(8, "big")
    return int.from_bytes(blake2b(name, digest_size=8, key=key).digest(), "big")


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
