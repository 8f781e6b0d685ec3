"""The queues of lite topics: the next queue offset of each, and reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from mqlake.broker.state.lite.names import queue_name
from mqlake.broker.state.lite.next_offsets import NextOffsets, NextTables
from mqlake.formats.properties import MULTI_DISPATCH
from mqlake.formats.record import decode
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.store.config.consumer_offsets import LARGEST_OFFSET
from mqlake.store.port import LightQueues, Store

_KEPT: Final = 1 << 20
"""Queues whose next offset is known without a search; at most three times as many."""


class LiteMessage(NamedTuple):
    """A message of a lite topic: its queue offset, and its record."""

    queue_offset: int
    record: memoryview


class NextOffset(NamedTuple):
    """The queue offset of the next message of a lite topic, and whether it is its first one."""

    offset: int
    is_first: bool


class LiteQueues:
    """The queues of a broker's lite topics."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # Next offsets that were given out: the newer ones, and those before them, which are kept
        # until their messages are dispatched. These messages are before `_old_end`.
        self._young, self._old = NextOffsets(), NextOffsets()
        self._old_end = 0
        self._topics: dict[str, int] = {}
        self._searchable_from = store.watermarks.end

    @property
    def light(self) -> LightQueues:
        """Return the light queues.

        Raises:
            RemotingError: the broker derives none.
        """
        found = self._store.light
        if found is None:
            reason = "this broker has no lite topics: set enableLmq=true, and restart it"
            raise RemotingError(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, reason)
        return found

    @property
    def next_offsets(self) -> NextTables:
        """The next offsets, for a caller that puts messages itself, until something else is called.

        Whoever puts a message counts up the next offset of its queue, which must be in the table
        that counts: another table may have it, too.
        """
        return NextTables(self._young.rows, self._young.used, self._old.rows)

    @property
    def is_full(self) -> bool:
        """Whether the table that counts may be replaced to add a queue.

        Before, each message that has an offset must be put: its offset could be searched before the
        message is found, and be given again.
        """
        return len(self._young) >= _KEPT and not self._young.has_room

    def take_offset(self, topic: str, name: str, check: Callable[[], object]) -> NextOffset:
        """Return the queue offset of the next message of a lite topic, which is put now.

        The arguments and errors are those of `next_offset`.
        """
        name_hash = self.light.name_hash(name.encode())
        found = self.next_offset(topic, name, name_hash, check, 0)
        self._young.put(name_hash, found.offset + 1, self._number(topic))
        return found

    def next_offset(
        self, topic: str, name: str, name_hash: int, check: Callable[[], object], put_end: int
    ) -> NextOffset:
        """Return the queue offset of the next message of a lite topic, and keep it in the table
        that counts.

        Args:
            check: called if the queue has no message yet; changes nothing.
            put_end: physical offset after the last message that was put, also if the log does not
                know of it yet.

        Raises:
            RemotingError: messages may wait for dispatch whose offsets are not known here.
        """
        known = self._young.get(name_hash)
        if known is not None:
            return NextOffset(known, is_first=False)
        known = self._old.get(name_hash)
        if known is not None:
            found = NextOffset(known, is_first=False)
        else:
            found = self._searched(topic, name, name_hash, check)
        if not self._young.has_room:
            self._make_room(put_end)
        self._young.put(name_hash, found.offset, self._number(topic))
        return found

    def _make_room(self, put_end: int) -> None:
        """Make room in the newer table, or begin another one if the messages before the older one
        was replaced are dispatched: a search finds them.
        """
        marks = self._store.watermarks
        if not self.is_full or marks.dispatched < self._old_end:
            self._young.grow()
            return
        self._old, self._young = self._young, NextOffsets()
        self._old_end = max(marks.end, put_end)

    def _number(self, topic: str) -> int:
        """Return the number of a parent topic."""
        return self._topics.setdefault(topic, len(self._topics) + 1)

    def _searched(
        self, topic: str, name: str, name_hash: int, check: Callable[[], object]
    ) -> NextOffset:
        if self._store.watermarks.dispatched < self._searchable_from:
            # Two messages of one offset would be one entry: an acknowledged message would be lost.
            reason = "messages of lite topics wait for dispatch; try again"
            raise RemotingError(ResponseCode.SYSTEM_BUSY, reason)
        last = self.light.last_of(topic, name_hash)
        if last is not None:
            return NextOffset(last.queue_offset + 1, is_first=False)
        check()
        # Its messages may have been removed: a group must not wait for offsets that come again.
        offsets = self._store.config.consumer_offsets
        known = (offsets.query(group, name, 0) for group in offsets.groups_of(name))
        offset = max((offset for offset in known if offset is not None), default=0)
        # A file of RocketMQ, or a master, may say anything.
        return NextOffset(min(max(offset, 0), LARGEST_OFFSET), is_first=True)

    def forget(self, topic: str) -> None:
        """Search the next offsets of a topic again, which was deleted.

        Those of other topics stay: a search does not find messages that wait for dispatch.
        """
        if (number := self._topics.get(topic)) is not None:
            self._young.forget(number)
            self._old.forget(number)

    def forget_all(self) -> None:
        """Search all next offsets again: another master may have put messages."""
        self._young, self._old = NextOffsets(), NextOffsets()
        self._searchable_from = self._store.watermarks.end

    def max_offset(self, topic: str, name: str) -> int:
        """Return the queue offset after the last message; 0 without one."""
        last = self.light.last(topic, name.encode())
        return 0 if last is None else last.queue_offset + 1

    def min_offset(self, topic: str, name: str) -> int:
        """Return the queue offset of the first message; 0 without one."""
        first = next(iter(self.light.places(topic, name.encode(), 0, 1)), None)
        return 0 if first is None else first.queue_offset

    def timestamp(self, topic: str, name: str, queue_offset: int) -> int:
        """Return when a message was stored, milliseconds; -1 without a message."""
        found = self.light.places(topic, name.encode(), queue_offset, 1)
        return self._timestamp(found[0].physical_offset) if found else -1

    def last_timestamp(self, topic: str, name: str) -> int:
        """Return when the last message was stored, milliseconds; -1 without one."""
        last = self.light.last(topic, name.encode())
        return -1 if last is None else self._timestamp(last.physical_offset)

    def _timestamp(self, physical_offset: int) -> int:
        record = self._store.reads.raw_at(physical_offset, crc=False)
        return -1 if record is None else decode(record).store_timestamp

    def read(
        self, topic: str, name: str, queue_offset: int, count: int, most_bytes: int
    ) -> list[LiteMessage]:
        """Return messages from a queue offset on; the first one whatever its size."""
        found: list[LiteMessage] = []
        size = 0
        for place in self.light.places(topic, name.encode(), queue_offset, count):
            record = self._store.reads.raw_at(place.physical_offset)
            if record is None or len(record) != place.size:
                continue
            size += len(record)
            if found and size > most_bytes:
                break
            found.append(LiteMessage(place.queue_offset, record))
        return found

    def newest(self, topic: str) -> Iterator[tuple[str, int] | None]:
        """Yield each lite topic's queue, and when its last message was stored; None for others."""
        for place in self.light.heads(topic):
            yield None if place is None else self._newest(topic, place.physical_offset)

    def _newest(self, topic: str, physical_offset: int) -> tuple[str, int] | None:
        record = self._store.reads.raw_at(physical_offset, crc=False)
        if record is None:
            return None
        found = decode(record)
        name = found.properties.get(MULTI_DISPATCH, "")
        return (name, found.store_timestamp) if name.startswith(queue_name(topic, "")) else None
