"""Pull a stretch of a queue, a bounded number of bytes at a time."""

# pyright: basic
# NumPy's types do not cover indexing by masks.

from __future__ import annotations

import asyncio
from typing import NamedTuple

import numpy as np

from mqlake.arrow.record_run import find_messages, is_whole
from mqlake.client.consumer.broker_calls import Pulled, PullStatus
from mqlake.client.errors import ClientError
from mqlake.dispatch.adjacent import AT, FAULT, PADDING, QUEUE_OFFSET
from mqlake.dispatch.batch import Longs
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
                if self.queue in await self._brokers.queues(self.queue.topic):
                    raise
                self._lose(self._range.end, "the queue no longer exists")
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

        A record that the broker no longer has proves nothing.
        """
        if expected is None:
            return
        found = await self._brokers.mark(self.queue, offset)
        if found is not None and found != expected:
            self._losses.another_queue(self.queue, offset)

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
        data, rows, end = find_messages(data)
        is_complete = is_whole(data, rows, end)
        offsets = rows[QUEUE_OFFSET]
        inside = (offsets >= first) & (offsets < last)
        rows = rows if inside.all() else rows[:, inside]
        if not rows.size and not is_complete:
            self._lose(first + 1, f"the record is damaged: {FAULT_REASONS[end]}")
            return
        if rows.size:
            if self._task.expression == ALL:
                self._find_holes(rows[QUEUE_OFFSET])
            self._keep(data, rows[AT] if self._are_good(rows) else rows[AT, rows[FAULT] == 0])
        # After bytes that are not a record, the next pull begins with them.
        reached = int(rows[QUEUE_OFFSET, -1]) + 1 if rows.size else first
        self._next = min(max(reached, next_offset), last) if is_complete else reached

    def _find_holes(self, offsets: Longs) -> None:
        """Report queue offsets that were skipped."""
        expected = np.arange(self._next, self._next + len(offsets))
        if np.array_equal(offsets, expected):
            return
        previous = np.concatenate(([self._next - 1], offsets[:-1]))
        for before, after in zip(previous.tolist(), offsets.tolist(), strict=True):
            if after > before + 1:
                self._losses.lost(
                    self.queue,
                    before + 1,
                    after - before - 1,
                    "the broker does not return them",
                )

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
