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
from mqlake.store.port import LightQueues, Store

_KEPT: Final = 1 << 20
"""Queues whose next offset is known without a search; at most three times as many."""


class LiteMessage(NamedTuple):
    """A message of a lite topic: its queue offset, and its record."""

    queue_offset: int
    record: memoryview


class LiteQueues:
    """The queues of a broker's lite topics."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # Next offsets that were given out: the newer ones, and those before them, which are kept
        # until their messages are dispatched.
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

    def take_offset(self, topic: str, name: str, check: Callable[[], object]) -> int:
        """Return the queue offset of the next message of a lite topic, which is put now.

        The arguments and errors are those of `next_offset`.
        """
        name_hash = self.light.name_hash(name.encode())
        offset = self.next_offset(topic, name, name_hash, check)
        self._young.put(name_hash, offset + 1, self._number(topic))
        return offset

    def next_offset(
        self, topic: str, name: str, name_hash: int, check: Callable[[], object]
    ) -> int:
        """Return the queue offset of the next message of a lite topic, and keep it in the table
        that counts.

        Args:
            check: called if the queue has no message yet.

        Raises:
            RemotingError: messages may wait for dispatch whose offsets are not known here.
        """
        offset = self._young.get(name_hash)
        if offset is not None:
            return offset
        offset = self._old.get(name_hash)
        if offset is None:
            offset = self._searched(topic, name, name_hash, check)
        if not self._young.has_room:
            self._make_room()
        self._young.put(name_hash, offset, self._number(topic))
        return offset

    def _make_room(self) -> None:
        """Make room in the newer table, or begin another one if the messages before the older one
        was replaced are dispatched: a search finds them.
        """
        is_found = self._store.watermarks.dispatched >= self._old_end
        if len(self._young) < _KEPT or not is_found:
            self._young.grow()
            return
        self._old, self._young = self._young, NextOffsets()
        self._old_end = self._store.watermarks.end + 1

    def _number(self, topic: str) -> int:
        """Return the number of a parent topic."""
        return self._topics.setdefault(topic, len(self._topics) + 1)

    def _searched(self, topic: str, name: str, name_hash: int, check: Callable[[], object]) -> int:
        if self._store.watermarks.dispatched < self._searchable_from:
            # Two messages of one offset would be one entry: an acknowledged message would be lost.
            reason = "messages of lite topics wait for dispatch; try again"
            raise RemotingError(ResponseCode.SYSTEM_BUSY, reason)
        last = self.light.last_of(topic, name_hash)
        if last is not None:
            return last.queue_offset + 1
        check()
        # Its messages may have been removed: a group must not wait for offsets that come again.
        offsets = self._store.config.consumer_offsets
        known = (offsets.query(group, name, 0) for group in offsets.groups_of(name))
        return max((offset for offset in known if offset is not None), default=0)

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
