"""Answer questions about a store that is being written (docs/live-store.md, "Reading").

Searches are those of `mqlake.store.reader`, over the log, the queues and the index in memory.
Upstream: `DefaultMessageStore`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import numpy as np

from mqlake.dispatch.columns import QUEUE_ENTRY
from mqlake.dispatch.queue_read import wanted
from mqlake.formats.consume_queue import ENTRY, ENTRY_SIZE, QueueEntry
from mqlake.formats.dialect import Dialect
from mqlake.formats.file_name import check_topic_name
from mqlake.metrics.histogram import Histogram
from mqlake.store.dispatch.dispatcher import Dispatcher
from mqlake.store.incarnations.table import Incarnations
from mqlake.store.index import key_query
from mqlake.store.index.index_files import IndexFiles
from mqlake.store.index.key_query import TAG_TYPE, KeyQuery
from mqlake.store.index.key_scan import KeyScan
from mqlake.store.index.owned_index import OwnedIndex
from mqlake.store.live_settings import Current
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.log.scan import Head, head_at
from mqlake.store.lookups import DEFAULT_LIMIT, Lookups
from mqlake.store.queues import time_range
from mqlake.store.queues.owned_queues import OwnedQueues
from mqlake.store.queues.tag_filter import TagFilter
from mqlake.store.queues.time_range import TimeRange
from mqlake.store.queues.time_search import Boundary, offset_by_time
from mqlake.store.reads.arrivals import Arrivals
from mqlake.store.reads.columns_ahead import Kept
from mqlake.store.reads.live_batches import BatchQueueReading, LiveBatchQueue
from mqlake.store.reads.live_get import QueueReading
from mqlake.store.reads.live_queue import LiveQueue
from mqlake.store.reads.live_result import LiveGetResult
from mqlake.store.reads.mapped_files import MappedFiles
from mqlake.store.results import FoundOffsets, QueryBudget, QueryResult, QueueRange
from mqlake.store.settings import StoreSettings
from mqlake.store.watermarks import Watermarks

_MOST_BYTES = 128 << 20
_KEPT_READINGS = 4096
_SHORT = 64 << 10
"""Bytes of log that are walked sooner than a compiled scan of them begins."""


@dataclass(frozen=True)
class Live:
    """What reads need from a live store.

    Attributes:
        watermarks: messages are read before `confirmed`.
        arrivals: notifies those who wait for messages of a topic.
        catch_up: dispatches what may be read but is not dispatched yet.
        dialect: decides which keys the index has.
        incarnations: which records of deleted topics are dead.
    """

    log: OwnedCommitLog
    queues: OwnedQueues
    index: OwnedIndex
    dispatcher: Dispatcher
    settings: Current[StoreSettings]
    watermarks: Watermarks
    arrivals: Arrivals
    catch_up: Callable[[], object]
    dialect: Dialect
    incarnations: Incarnations


class LiveReads(Lookups):
    """The reading side of a live store. For the store's thread.

    `get` sees what is dispatched, which follows a put within milliseconds; everything else sees
    immediately what may be read. A topic that cannot be a directory name raises `FormatError`.

    Attributes:
        arrivals: notifies those who wait for messages of a topic.
        mapped: files for kernels.
    """

    def __init__(self, live: Live) -> None:
        self._live = live
        self._log, self._queues = live.log, live.queues
        self.arrivals = live.arrivals
        self._kept, self.mapped = Kept(), MappedFiles(live.log, live.queues)
        self._version, self._versioned = 0, (-1, -1)
        self._reading = lru_cache(_KEPT_READINGS)(self._make_reading)
        live.settings.on_change(self.forget, "max_filter_message_size")

    # Queues

    @property
    def incarnations(self) -> Incarnations:
        return self._live.incarnations

    @property
    def max_offset(self) -> int:
        """Physical offset after the last message that may be read."""
        return self._live.watermarks.confirmed

    @property
    def version(self) -> int:
        """A number that changes when the least or greatest offset of any queue may have changed."""
        versioned = self._live.dispatcher.position, self._queues.min_physical_offset
        if versioned != self._versioned:
            self._version, self._versioned = self._version + 1, versioned
        return self._version

    def topics(self) -> list[str]:
        """Return the names of all topics that have a queue, sorted."""
        return sorted({topic for topic, _ in self._queues.queues()})

    def queues(self, topic: str) -> list[int]:
        """Return the ids of a topic's queues, ascending."""
        check_topic_name(topic)
        return self._queues.ids(topic)

    def queue(self, topic: str, queue_id: int) -> QueueRange:
        """Return a queue's offsets; (0, 0) if there is no such queue."""
        check_topic_name(topic)
        low = self._queues.min_offset(topic, queue_id)
        return QueueRange(low, self._queues.max_offset(topic, queue_id))

    def entries(self, topic: str, queue_id: int, start: int, count: int) -> list[QueueEntry]:
        """Return up to `count` entries of a queue from an offset on; fewer at the end of a file.

        A batch consume queue has an entry for each batch; the first one contains the offset, or
        follows it.
        """
        batches = self._queues.batches(check_topic_name(topic), queue_id)
        if batches is not None:
            units = batches.units(batches.place_of(start), batches.end)
            return [QueueEntry(*unit[:3]) for unit in islice(units, count)]
        data = self._queues.entries(check_topic_name(topic), queue_id, start, count)
        return [QueueEntry(*entry) for entry in ENTRY.iter_unpack(data)]

    def stored_bytes(
        self, topic: str, queue_id: int, start: int, end: int, sizes: Histogram
    ) -> int:
        """Return the size of the records between two queue offsets, according to the entries.

        Removed messages do not count.

        Args:
            sizes: gets the size of each message; of a batch, equal shares.
        """
        batches = self._queues.batches(check_topic_name(topic), queue_id)
        if batches is not None:
            total = 0
            for unit in batches.units(batches.place_of(start), end):
                total += unit.size
                sizes.add(unit.size / unit.batch_size, unit.batch_size)
            return total
        data = self._queues.entries(topic, queue_id, start, end - start)
        found = np.frombuffer(data, QUEUE_ENTRY)["size"]
        places = np.searchsorted(sizes.bounds, found)
        total = int(found.sum(dtype=np.int64))
        sizes.add_counts(np.bincount(places, minlength=len(sizes.counts)).tolist(), total)
        return total

    def get(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_messages: int = 32,
        *,
        tags: str | None = None,
        max_bytes: int | None = None,
        crc: bool = True,
        exact: bool = True,
    ) -> LiveGetResult:
        """Return messages of a queue from an offset on.

        Statuses and next offset are RocketMQ's. It also examines no more queue entries in one call
        than `maxFilterMessageSize` allows; NO_MATCHED_MESSAGE means that none of them matched, and
        `next_offset` is where to continue.

        Args:
            max_messages: at least 1 is returned if the queue has one.
            tags: an expression such as "TagA || TagB".
            max_bytes: of all records; the first is returned whatever its size. Default:
                `maxTransferBytesOnMessageInMemory`.
            crc: check the bodies' CRC. A record with a wrong CRC is skipped.
            exact: leave out messages that have only the hash of a requested tag, which takes time.
        """
        reading = self._reading(topic, queue_id, tags, crc, exact)
        if max_bytes is None:
            max_bytes = self._live.settings.now.max_transfer_bytes_on_message_in_memory
        most = min(max_bytes, _MOST_BYTES)
        return reading.get(offset, max(1, max_messages), most, self._live.watermarks.confirmed)

    def tags_codes(self, topic: str, tags: str | None) -> list[int] | None:
        """Return the codes by which entries are selected: see `TagFilter.codes`."""
        return TagFilter(tags).codes(topic)

    def warm_up(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_messages: int = 32,
        *,
        tags: str | None = None,
        crc: bool = True,
        exact: bool = True,
    ) -> Callable[[], object] | None:
        """Return a job that reads messages into memory, to be run in any thread before `get`.

        None if they are in memory already, or the system does not report it. The arguments are
        those of `get`.
        """
        reading = self._reading(topic, queue_id, tags, crc, exact)
        return reading.warm_up(offset, max_messages, self._live.watermarks.confirmed)

    def _make_reading(
        self,
        topic: str,
        queue_id: int,
        tags: str | None,
        crc: bool,
        exact: bool,
    ) -> QueueReading | BatchQueueReading:
        chosen = TagFilter(tags)
        which = wanted(check_topic_name(topic), queue_id, chosen.codes(topic), crc=crc)
        most = self._live.settings.now.max_filter_message_size // ENTRY_SIZE
        decisive = chosen if exact else TagFilter(None)
        if self._queues.batches(topic, queue_id) is not None:
            return BatchQueueReading(self._log, self._queues, which, decisive, most)
        return QueueReading(
            log=self._log,
            queues=self._queues,
            wanted=which,
            tags=decisive,
            most_entries=most,
            kept=self._kept,
        )

    def forget(self) -> None:
        """Drop cached queues: some were removed, or must be read in another way."""
        self._reading.cache_clear()
        self.mapped.clear()

    def head_from(self, topic: str, queue_id: int, offset: int) -> Head | None:
        """Return the head of a queue's first message from a queue offset on, or None at its end.

        This includes an inner batch that contains the offset.
        """
        self._live.catch_up()
        view = self._view(topic, queue_id)
        if isinstance(view, LiveBatchQueue):
            offset = view.base_of(offset)
        found = next(view.heads(offset, view.max_offset), None)
        return found[1] if found else None

    def raw_at(self, physical_offset: int, *, crc: bool = True) -> memoryview | None:
        """Return the bytes of the message that starts at a physical offset, not copied.

        Args:
            crc: check the CRC of its body.
        """
        if not self.min_offset <= physical_offset < self.max_offset:
            return None
        fault, layout = self._log.check(physical_offset, crc=crc)
        place = self._log.place(physical_offset)
        if fault or layout is None or place is None:
            return None
        if self.incarnations:
            head = head_at(self._log, physical_offset)
            if head and self.incarnations.is_dead(head.topic.decode(), physical_offset):
                return None
        return place.view[place.at : place.at + layout.size]

    def catch_up(self) -> None:
        """Dispatch what may be read but is not dispatched yet."""
        self._live.catch_up()

    # Keys

    def _search(
        self, query: KeyQuery, limit: int, budget: QueryBudget
    ) -> Generator[None, None, FoundOffsets]:
        index = self._index(query)
        # Not cached between queries: what it scans grows with each put.
        scan = KeyScan(self._log, _SHORT)
        return key_query.find(
            log=self._log,
            log_end=self.max_offset,
            index=index,
            scan=scan,
            query=query,
            limit=limit,
            budget=budget,
        )

    def _index(self, query: KeyQuery) -> IndexFiles:
        live = self._live
        is_in_index = query.index_type != TAG_TYPE or live.dialect is Dialect.V5_5
        if not live.settings.now.message_index_enable or not is_in_index:
            return IndexFiles([], [])
        files = live.index.files().files
        if files:
            # Records that were dispatched and are not in the last file have no keys.
            files[-1] = files[-1]._replace(covered_end=live.dispatcher.position)
        return IndexFiles(files, [])

    @property
    def index_end(self) -> tuple[int, int]:
        """Store timestamp (milliseconds) and physical offset of the last indexed record.

        (0, 0) without an indexed record.
        """
        self._live.catch_up()
        files = self._live.index.files().files
        header = files[-1].header if files else None
        return (header.end_timestamp, header.end_physical_offset) if header else (0, 0)

    # Time

    def offset_by_time(
        self,
        topic: str,
        queue_id: int,
        milliseconds: int,
        boundary: Boundary | str = Boundary.LOWER,
    ) -> int:
        """Return the queue offset at a store time: see `Boundary`."""
        self._live.catch_up()
        return offset_by_time(self._view(topic, queue_id), milliseconds, Boundary(boundary))

    def by_time_range(
        self,
        topic: str,
        begin: int,
        end: int,
        max: int = DEFAULT_LIMIT,  # noqa: A002
        tag: str | None = None,
    ) -> QueryResult:
        """Return the first `max` messages stored in [begin, end] (ms), in store-time order.

        Messages with equal times are sorted by physical offset.
        """
        self._live.catch_up()
        times, tags = TimeRange(begin, end), TagFilter(tag)
        sources = [
            time_range.in_queue(self._view(topic, queue_id), times, tags)
            for queue_id in self.queues(topic)
        ]
        return QueryResult(*time_range.read(self._log, sources, max, tags))

    def _view(self, topic: str, queue_id: int) -> LiveQueue | LiveBatchQueue:
        topic = check_topic_name(topic)
        batches = self._queues.batches(topic, queue_id)
        if batches is not None:
            low = self._queues.min_offset(topic, queue_id)
            return LiveBatchQueue(self._log, self.max_offset, batches, low)
        return LiveQueue(self._log, self.max_offset, self._queues, topic, queue_id)
