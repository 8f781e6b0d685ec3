"""Pull a stretch of a queue, a bounded number of bytes at a time."""

# pyright: basic
# NumPy's types do not cover indexing by masks.

from __future__ import annotations

import asyncio
from typing import NamedTuple

import numpy as np

from mqlake.arrow.record_run import are_wrapped, find_messages, is_whole
from mqlake.client.consumer.broker_calls import Pulled, PullStatus
from mqlake.client.errors import ClientError
from mqlake.dispatch.adjacent import AT, FAULT, PADDING, QUEUE_OFFSET, find_records
from mqlake.dispatch.batch import Longs
from mqlake.formats import record
from mqlake.formats.batch_consume_queue import MOST_QUEUE_OFFSET, inner_batch
from mqlake.formats.record import FAULT_REASONS, Fault
from mqlake.query.live.brokers import ALL, Brokers, Mark, name_of
from mqlake.query.live.local_queue import LocalQueue, find_local_queue
from mqlake.query.live.losses import LiveLosses
from mqlake.query.live.task import LiveTask, OffsetRange

CHUNK = 4 << 20
"""Bytes of records that are returned together, plus one pull at most."""

_IDLE = 0.2
"""Seconds before the next request to a broker that should have more messages."""


class Chunk(NamedTuple):
    """Records of one queue, which may be scattered in the bytes, at these positions.

    PADDING follows the bytes.
    """

    data: bytes
    at: Longs


class Pulls:
    """Reads a range of a queue from its start on.

    Args:
        losses: is notified of messages that are damaged or missing.

    Attributes:
        queue: the queue.
    """

    def __init__(
        self, brokers: Brokers, task: LiveTask, one: OffsetRange, losses: LiveLosses
    ) -> None:
        self._brokers, self._task, self._range, self._losses = brokers, task, one, losses
        self.queue = one.queue
        self._local: LocalQueue | None = None
        self._is_open = False
        self._next = one.start
        self._parts: list[bytes] = []
        self._at: list[Longs] = []
        self._bytes = 0

    async def chunk(self) -> Chunk | None:
        """Return the next records, None after the last ones.

        Raises:
            ClientError: the broker does not answer.
            StoreError: messages are lost, unless that is tolerated.
        """
        if not self._is_open:
            await self._open()
        loop, idle_since = asyncio.get_running_loop(), None
        while self._next < self._range.end and self._bytes < CHUNK:
            before = self._next
            try:
                pulled = await self._pull()
            except ClientError:
                if await self._is_listed():
                    raise
                self._lose(
                    self._range.end,
                    "no name server lists the queue: the topic was deleted, or the broker is gone",
                )
                break
            self._take(pulled)
            if self._next > before:
                idle_since = None
                continue
            # The driver has seen more messages: this may be a replica that lags.
            now = loop.time()
            idle_since = now if idle_since is None else idle_since
            if now - idle_since >= self._brokers.seconds:
                self._give_up(pulled)
            await asyncio.sleep(_IDLE)
        if not self._parts:
            await self._check_mark(self._range.last, self._range.end - 1)
        return self._handed_over()

    def close(self) -> None:
        """Let go of all files."""
        if self._local is not None:
            self._local.close()

    async def _open(self) -> None:
        """Find the queue's files on this host, if they are there."""
        one = self._range
        self._local = await find_local_queue(self._brokers, self._task.local_stores, one)
        await self._check_mark(one.before, one.start - 1)
        self._is_open = True

    async def _check_mark(self, expected: Mark | None, offset: int) -> None:
        """Compare the record before the range, or its last one, with the query's record.

        A record that the broker no longer has proves nothing, and neither does a broker that has
        left the cluster: a pull reports what is lost.
        """
        if expected is None:
            return
        try:
            found = await self._brokers.mark(self.queue, offset)
        except ClientError:
            if await self._is_listed():
                raise
            return
        if found is not None and found != expected:
            self._losses.another_queue(self.queue, offset)

    async def _is_listed(self) -> bool:
        """Return whether a name server lists the queue."""
        return self.queue in await self._brokers.queues(self.queue.topic)

    async def _pull(self) -> Pulled:
        if self._local is not None:
            left = self._range.end - self._next
            found = await asyncio.to_thread(self._local.records, self._next, left)
            if found:
                return Pulled(PullStatus.FOUND, found, self._next, self._next, self._range.end)
        most = min(self._task.pull_size, self._range.end - self._next)
        return await self._brokers.pull(self.queue, self._next, most, self._task.expression)

    def _give_up(self, pulled: Pulled) -> None:
        """Report that a queue is shorter than it was.

        Raises:
            ClientError: the queue is not shorter, but its broker returns no messages.
            StoreError: messages are lost, unless that is tolerated.
        """
        if pulled.max_offset >= self._range.end:
            raise ClientError(
                f"{name_of(self.queue)}: the broker returns no messages from offset "
                f"{self._next} on, although the queue ends at {pulled.max_offset}"
            )
        self._lose(
            self._range.end,
            f"the queue ends at {pulled.max_offset} now: it was cut, or the topic was created "
            "again",
        )

    def _take(self, pulled: Pulled) -> None:
        first, last = self._next, self._range.end
        if pulled.status is PullStatus.OFFSET_ILLEGAL:
            if pulled.min_offset > first:
                self._lose(min(pulled.min_offset, last), "the broker has deleted them")
        elif pulled.status is PullStatus.NO_MATCHED:
            following = min(pulled.next_offset, last)
            if self._task.expression != ALL:
                self._next = max(first, following)
            elif following > first:
                self._lose(following, "the broker does not return them")
        elif pulled.status is PullStatus.FOUND:
            self._take_records(bytes(pulled.data), pulled.next_offset)

    def _take_records(self, data: bytes, next_offset: int) -> None:
        first, last = self._next, self._range.end
        if self._task.decompress:
            data, found, end = find_messages(data)
        else:
            found, end = find_records(data)
        rows, is_complete = found, is_whole(data, found, end)
        offsets, ends = rows[QUEUE_OFFSET], _ends(data, rows)
        inside = (offsets >= first) & (offsets < last)
        rows = rows if inside.all() else rows[:, inside]
        # An inner batch that stays whole may begin before the first offset.
        reached = min(int(ends.max(initial=first)), last)
        if reached <= first and not is_complete:
            self._lose(first + 1, f"the record is damaged: {FAULT_REASONS[end]}")
            return
        if self._task.expression == ALL:
            self._find_holes(found[QUEUE_OFFSET], ends)
        if rows.size:
            self._keep(data, rows[AT] if self._are_good(rows) else rows[AT, rows[FAULT] == 0])
        # After bytes that are not a record, the next pull begins with them.
        self._next = min(max(reached, next_offset), last) if is_complete else reached

    def _find_holes(self, offsets: Longs, ends: Longs) -> None:
        """Report queue offsets that no record has.

        Args:
            offsets, ends: of each record, the queue offsets of its first message and after its
                last one.
        """
        following = np.concatenate(([self._next], ends[:-1]))
        if np.array_equal(offsets, following):
            return
        starts = np.minimum(offsets, self._range.end)
        following = np.maximum.accumulate(following)
        for before, start in zip(following.tolist(), starts.tolist(), strict=True):
            if before < start:
                count = start - before
                self._losses.lost(self.queue, before, count, "the broker does not return them")

    def _are_good(self, rows: Longs) -> bool:
        """Return whether all records are good; report those that are not."""
        if not rows[FAULT].any():
            return True
        for offset in rows[QUEUE_OFFSET, rows[FAULT] != 0].tolist():
            self._losses.lost(
                self.queue, offset, 1, f"the record is damaged: {FAULT_REASONS[Fault.CRC]}"
            )
        return False

    def _keep(self, data: bytes, at: Longs) -> None:
        self._at.append(at + self._bytes)
        self._parts.append(data)
        self._bytes += len(data)

    def _lose(self, until: int, reason: str) -> None:
        self._losses.lost(self.queue, self._next, until - self._next, reason)
        self._next = until

    def _handed_over(self) -> Chunk | None:
        if not self._parts:
            return None
        found = Chunk(b"".join((*self._parts, PADDING)), np.concatenate(self._at))
        self._parts, self._at, self._bytes = [], [], 0
        return found


def _ends(data: bytes, rows: Longs) -> Longs:
    """Return the queue offset after each record, or after the last message of an inner batch."""
    ends = rows[QUEUE_OFFSET] + 1
    for row in np.flatnonzero(are_wrapped(rows)).tolist():
        found = record.decode(data, int(rows[AT, row]))
        _, count = inner_batch(found.properties, found.queue_offset)
        ends[row] = min(found.queue_offset + count, MOST_QUEUE_OFFSET)
    return ends
