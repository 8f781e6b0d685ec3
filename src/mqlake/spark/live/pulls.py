"""Pull a stretch of a queue, a bounded amount of bytes at a time."""

# pyright: basic
# Reason: NumPy's indexing by masks.

from __future__ import annotations

import asyncio
from typing import NamedTuple

import numpy as np

from mqlake.arrow.record_run import find_messages, is_whole
from mqlake.client.consumer.broker_calls import Pulled, PullStatus
from mqlake.client.errors import ClientError
from mqlake.dispatch.adjacent import AT, FAULT, QUEUE_OFFSET, SIZE
from mqlake.dispatch.batch import Longs
from mqlake.formats.record import FAULT_REASONS, Fault
from mqlake.spark.live.brokers import ALL, Brokers, name_of
from mqlake.spark.live.losses import Losses
from mqlake.spark.live.plan import Range, Task

CHUNK = 2 << 20
"""Bytes of records that are handed over together, and one pull more at most."""

_IDLE = 0.2
"""Seconds before a broker is asked again that should have more."""


class Chunk(NamedTuple):
    """Records of one queue, wherever they are in the bytes: positions and lengths."""

    data: bytes
    at: Longs
    sizes: Longs


class Pulls:
    """Reads a range of a queue from its start on.

    Args:
        losses: is told of messages that are damaged or missing.
    """

    def __init__(self, brokers: Brokers, task: Task, one: Range, losses: Losses) -> None:
        self._brokers, self._task, self._range, self._losses = brokers, task, one, losses
        self._next = one.start
        self._parts: list[bytes] = []
        self._at: list[Longs] = []
        self._sizes: list[Longs] = []
        self._bytes = 0

    async def chunk(self) -> Chunk | None:
        """Return the next records, None after the last ones.

        Raises:
            ClientError: the broker does not answer.
            StoreError: messages are lost, and that is not tolerated.
        """
        loop, idle_since = asyncio.get_running_loop(), None
        while self._next < self._range.end and self._bytes < CHUNK:
            before = self._next
            try:
                pulled = await self._pull()
            except ClientError:
                if self._range.queue in await self._brokers.queues(self._range.queue.topic):
                    raise
                self._lose(self._range.end, "the queue does not exist any more")
                break
            self._take(pulled)
            if self._next > before:
                idle_since = None
                continue
            # The driver has seen more messages: this may be a replica that is not as far yet.
            now = loop.time()
            idle_since = now if idle_since is None else idle_since
            if now - idle_since >= self._brokers.seconds:
                self._give_up(pulled)
            await asyncio.sleep(_IDLE)
        return self._handed_over()

    async def _pull(self) -> Pulled:
        most = min(self._task.pull_size, self._range.end - self._next)
        return await self._brokers.pull(self._range.queue, self._next, most, self._task.expression)

    def _give_up(self, pulled: Pulled) -> None:
        """Report that a queue is shorter than it was.

        Raises:
            ClientError: it is not, but its broker gives no messages.
            StoreError: messages are lost, and that is not tolerated.
        """
        if pulled.max_offset >= self._range.end:
            raise ClientError(
                f"{name_of(self._range.queue)}: the broker gives no messages from offset "
                f"{self._next} on, though the queue ends at {pulled.max_offset}"
            )
        self._lose(
            self._range.end,
            f"the queue ends at {pulled.max_offset} now: it was cut, or the topic was created anew",
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
                self._lose(following, "the broker does not hand them over")
        elif pulled.status is PullStatus.FOUND:
            self._take_records(bytes(pulled.data), pulled.next_offset)

    def _take_records(self, data: bytes, next_offset: int) -> None:
        first, last = self._next, self._range.end
        data, rows, end = find_messages(data)
        is_complete = is_whole(data, rows, end)
        offsets = rows[QUEUE_OFFSET]
        rows = rows[:, (offsets >= first) & (offsets < last)]
        if not rows.size and not is_complete:
            self._lose(first + 1, f"the record is damaged: {FAULT_REASONS[end]}")
            return
        if rows.size:
            if self._task.expression == ALL:
                self._find_holes(rows[QUEUE_OFFSET])
            self._find_damage(rows)
            self._keep(data, rows[:, rows[FAULT] == 0])
        # Behind bytes that are no record, the next pull begins with them.
        reached = int(rows[QUEUE_OFFSET, -1]) + 1 if rows.size else first
        self._next = min(max(reached, next_offset), last) if is_complete else reached

    def _find_holes(self, offsets: Longs) -> None:
        """Report queue offsets that were passed over."""
        expected = np.arange(self._next, self._next + len(offsets))
        if np.array_equal(offsets, expected):
            return
        previous = np.concatenate(([self._next - 1], offsets[:-1]))
        for before, after in zip(previous.tolist(), offsets.tolist(), strict=True):
            if after > before + 1:
                self._losses.lost(
                    self._range.queue,
                    before + 1,
                    after - before - 1,
                    "the broker does not hand them over",
                )

    def _find_damage(self, rows: Longs) -> None:
        for offset in rows[QUEUE_OFFSET, rows[FAULT] != 0].tolist():
            self._losses.lost(
                self._range.queue, offset, 1, f"the record is damaged: {FAULT_REASONS[Fault.CRC]}"
            )

    def _keep(self, data: bytes, rows: Longs) -> None:
        self._at.append(rows[AT] + self._bytes)
        self._sizes.append(rows[SIZE])
        self._parts.append(data)
        self._bytes += len(data)

    def _lose(self, until: int, reason: str) -> None:
        self._losses.lost(self._range.queue, self._next, until - self._next, reason)
        self._next = until

    def _handed_over(self) -> Chunk | None:
        if not self._parts:
            return None
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        found = Chunk(data, np.concatenate(self._at), np.concatenate(self._sizes))
        self._parts, self._at, self._sizes, self._bytes = [], [], [], 0
        return found
