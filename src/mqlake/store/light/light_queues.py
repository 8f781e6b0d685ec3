"""All light queues of a store that this process writes (docs/live-store.md, "Light queues").

The entries of one topic's light queues are in one file for each segment of the log: they are a
function of this segment. Upstream: `LmqDispatch`, `RocksDBConsumeQueueStore`.
"""

from __future__ import annotations

import errno
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

import numpy as np

from mqlake.dispatch.batch import Batch
from mqlake.errors import DiskError, FormatError
from mqlake.formats.file_name import check_topic_name, parse_segment_name, segment_name
from mqlake.formats.light import light_queue_file
from mqlake.formats.light.light_queue_file import LightHeader
from mqlake.formats.topic_names import LIGHT_PREFIX
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.incarnations.table import Incarnations
from mqlake.store.light.light_file import LightAppend, LightFile
from mqlake.store.light.light_records import LightRecord, light_records
from mqlake.store.log.pending_sync import PendingSync

DIRECTORY = "lightqueue"
COMPLETE = f"{DIRECTORY}/complete"
"""Exists once all records before the checkpoint have their entries."""
_MOST_OPEN = 64
_LOOKED_AT = 8
"""Newest files of a topic in which the newest message of a queue is sought before it gets another:
a queue that is new would be sought in all of them.
"""

_log = logging.getLogger(__name__)

LightArrived = Callable[[bytes], object]
"""Called with the name of each light queue that has got a message."""


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
        self._open: OrderedDict[tuple[str, int], LightFile] = OrderedDict()
        self._dirty: dict[tuple[str, int], tuple[LightFile, int]] = {}
        self._names: dict[str, int] = {}
        self._syncs = 0
        self._ended: set[tuple[str, int]] = set()
        self.min_physical_offset = 0
        self._arrived: LightArrived | None = None
        self._unordered: set[str] = set()

    # Files

    def topics(self) -> list[str]:
        """Return the topics that have light queues, sorted."""
        return sorted(self._bases)

    def _path(self, topic: str, base: int) -> str:
        return f"{DIRECTORY}/{topic}/{segment_name(base)}"

    def _file(self, topic: str, base: int) -> LightFile:
        key = (topic, base)
        found = self._open.get(key)
        if found is None:
            file = self._directory.open_writable(self._path(*key))
            header = light_queue_file.decode_header(file.view())
            found = LightFile(file, header, self._capacity)
            self._keep(key, found)
        self._open.move_to_end(key)
        return found

    def _keep(self, key: tuple[str, int], file: LightFile) -> None:
        self._open[key] = file
        if len(self._open) > _MOST_OPEN:
            # The file is not closed: a sync may be running. The last user closes it.
            self._open.popitem(last=False)

    @property
    def _capacity(self) -> int:
        return light_queue_file.capacity_of(self._segment_size)

    def _files(self, topic: str) -> Iterator[LightFile]:
        """Yield a topic's files, newest first."""
        for base in reversed(self._bases.get(topic, ())):
            yield self._file(topic, base)

    def _current(self, topic: str, physical_offset: int) -> LightFile:
        """Return the file of a record, created if it does not exist.

        Raises:
            DiskError: there is no room on the disk.
        """
        base = physical_offset // self._segment_size * self._segment_size
        bases = self._bases.get(topic)
        if bases and bases[-1] == base:
            return self._file(topic, base)
        return self._create(check_topic_name(topic), base)

    def _create(self, topic: str, base: int) -> LightFile:
        for path in (DIRECTORY, f"{DIRECTORY}/{topic}"):
            if not self._directory.is_directory(path):
                self._directory.make_directory(path)
                self._names[path.rpartition("/")[0]] = self._syncs
        size = light_queue_file.file_size(self._segment_size)
        file = self._directory.create(self._path(topic, base), size)
        self._ended.discard((topic, base))
        slots = light_queue_file.slots_of(self._segment_size)
        made = LightFile(file, LightHeader(base, self.seed, slots, 1, 0), self._capacity)
        made.begin()
        self._bases.setdefault(topic, []).append(base)
        self._keep((topic, base), made)
        self._changed(topic, made)
        self._names[f"{DIRECTORY}/{topic}"] = self._syncs
        return made

    @property
    def seed(self) -> int:
        """The seed of the hashes of names."""
        if self._seed is None:
            self._seed = self._make_seed()
        return self._seed

    def _changed(self, topic: str, file: LightFile) -> None:
        self._dirty[topic, file.base] = file, self._syncs

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
        pairs = self._ascending(topic, record)
        if not pairs:
            return
        file = self._current(topic, record.physical_offset)
        entries = [LightAppend(self._hash(name, file), offset) for name, offset in pairs]
        file.append(record.physical_offset, record.size, entries)
        self._changed(topic, file)
        if self._arrived is not None:
            for name, _ in pairs:
                self._arrived(name)

    def _ascending(self, topic: str, record: LightRecord) -> list[tuple[bytes, int]]:
        """Return the names and queue offsets of a record that get an entry; none if they have.

        A queue ascends: an offset that is not above its newest one gets none, and searches stay
        right whatever properties a record has.
        """
        newest = next(self._files(topic), None)
        if newest is not None and record.physical_offset <= newest.last_physical:
            return []
        first, pairs = self._first_of(topic), list[tuple[bytes, int]]()
        for name, offset in zip(record.names, record.offsets, strict=True):
            last = self._newest(islice(self._files(topic), _LOOKED_AT), name, first)
            if last is None or offset > last.queue_offset:
                pairs.append((name, offset))
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
        return pairs

    def notify(self, arrived: LightArrived) -> None:
        """Call a function for each message that a light queue gets from now on."""
        self._arrived = arrived

    def _hash(self, name: bytes, file: LightFile) -> int:
        return name_hash(name, file.seed)

    # Read

    def last(self, topic: str, name: bytes) -> LightPlace | None:
        """Return the newest message of a light queue, None without one.

        Args:
            topic: the topic of its records.
        """
        return self._newest(self._files(topic), name, self._first_of(topic))

    def _newest(self, files: Iterable[LightFile], name: bytes, first: int) -> LightPlace | None:
        for file in files:
            if number := file.newest(self._hash(name, file)):
                entry = file.entry(number)
                place = LightPlace(entry.queue_offset, entry.physical_offset, entry.size)
                return place if place.physical_offset >= first else None
        return None

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
        for file in self._files(topic):
            newest = file.newest(self._hash(name, file))
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
            found += _forwards(self._file(topic, base), start, newest, count - len(found))
            if len(found) >= count:
                break
        return found[:count]

    def count(self, topic: str) -> int:
        """Return how many light queues of a topic have messages."""
        files = list(self._files(topic))
        if len(files) < 2:
            return files[0].queues if files else 0
        return len(np.unique(np.concatenate([file.names() for file in files])))

    def heads(self, topic: str) -> Iterator[LightPlace]:
        """Yield the newest message of each light queue of a topic."""
        seen = set[int]()
        for file in list(self._files(topic)):
            for name in file.names().tolist():
                if name not in seen:
                    seen.add(name)
                    entry = file.entry(file.newest(name))
                    yield LightPlace(entry.queue_offset, entry.physical_offset, entry.size)

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
        self._directory.remove(self._path(topic, base))
        self._forget(topic, base)
        self._names[f"{DIRECTORY}/{topic}"] = self._syncs

    def _forget(self, topic: str, base: int) -> None:
        self._open.pop((topic, base), None)
        self._dirty.pop((topic, base), None)
        bases = self._bases[topic]
        bases.remove(base)
        if not bases:
            del self._bases[topic]

    def end(self, topic: str) -> None:
        """Let the light queues of a deleted topic be dead; `bury` removes their files.

        Files with records of the topic's next incarnation stay.
        """
        before = self._incarnations.before(topic)
        for base in list(self._bases.get(topic, ())):
            if self._file(topic, base).last_physical < before:
                self._forget(topic, base)
                self._ended.add((topic, base))

    def bury(self) -> None:
        """Remove the files of dead light queues.

        Raises:
            DiskError: the system refused it; the same call completes it.
        """
        for topic, base in sorted(self._ended):
            self._directory.remove(self._path(topic, base))
            self._ended.discard((topic, base))
            self._names[f"{DIRECTORY}/{topic}"] = self._syncs
            if topic not in self._bases and not any(name == topic for name, _ in self._ended):
                self._remove_directory(topic)

    def _remove_directory(self, topic: str) -> None:
        try:
            self._directory.remove_directory(f"{DIRECTORY}/{topic}")
        except DiskError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return
        self._names.pop(f"{DIRECTORY}/{topic}", None)
        self._names[DIRECTORY] = self._syncs

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
            self._seed = self._found_seed()
            self.remove_all()
            return self.min_physical_offset
        position = min(position, end)
        for topic in directory.names(DIRECTORY):
            if directory.is_directory(f"{DIRECTORY}/{topic}") and not self._adopt(topic, position):
                self._seed = self._found_seed()
                self.remove_all()
                return self.min_physical_offset
        return max(position, self.min_physical_offset)

    def _found_seed(self) -> int | None:
        """Return the seed of a file that can be read; None without one."""
        directory = self._directory
        for topic in directory.names(DIRECTORY):
            path = f"{DIRECTORY}/{topic}"
            for name in directory.names(path) if directory.is_directory(path) else ():
                file = directory.open(f"{path}/{name}")
                try:
                    return light_queue_file.decode_header(file.view()).seed
                except FormatError:
                    continue
                finally:
                    file.close()
        return None

    def _adopt(self, topic: str, position: int) -> bool:
        """Take over a topic's files; return whether all of them can be read."""
        before = self._first_of(topic)
        for name in self._directory.names(f"{DIRECTORY}/{topic}"):
            base = parse_segment_name(name)
            if base is None:
                continue
            self._names[f"{DIRECTORY}/{topic}"] = self._syncs
            if base >= position or base + self._segment_size <= self.min_physical_offset:
                self._directory.remove(self._path(topic, base))
                continue
            self._bases.setdefault(topic, []).append(base)
            try:
                file = self._file(topic, base)
            except FormatError:
                return False
            if not self._is_usable(file):
                return False
            self._seed = file.seed if self._seed is None else self._seed
            if base + self._segment_size > position:
                file.keep_before(position)
                self._changed(topic, file)
            if file.last_physical < before or not file.count:
                self._remove(topic, base)
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
        self._bases = {}
        self._open.clear()
        self._dirty.clear()
        for topic in directory.names(DIRECTORY):
            path = f"{DIRECTORY}/{topic}"
            if not directory.is_directory(path):
                continue
            for name in directory.names(path):
                if parse_segment_name(name) is not None:
                    directory.remove(f"{path}/{name}")
            self._names[path] = self._syncs

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
        files = [file.file for file, _ in self._dirty.values()]
        names = sorted(self._names, key=lambda path: (-path.count("/"), path == ""))
        self._syncs = number = self._syncs + 1

        def done() -> None:
            self._dirty = {key: each for key, each in self._dirty.items() if each[1] >= number}
            self._names = {path: begun for path, begun in self._names.items() if begun >= number}

        return PendingSync(self._directory, files, names, done)

    def check_linked(self) -> None:
        """Check that the file that was used last was not removed.

        Raises:
            SyncError: it was removed.
        """
        if self._open:
            self._open[next(reversed(self._open))].file.check_linked()

    def close(self) -> None:
        """Close all files."""
        for file in self._open.values():
            file.close()
        self._open.clear()
        self._dirty.clear()


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
