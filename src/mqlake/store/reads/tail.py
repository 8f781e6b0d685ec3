"""Follow the queues of a topic as messages arrive (docs/live-store.md, "Reading")."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Self

from mqlake.formats.file_name import check_topic_name
from mqlake.formats.record import Record
from mqlake.store.reads.live_reads import LiveReads
from mqlake.store.reads.live_result import LiveGetResult
from mqlake.store.results import Status

_AT_END = {
    Status.NO_MESSAGE_IN_QUEUE,
    Status.OFFSET_OVERFLOW_ONE,
    Status.OFFSET_OVERFLOW_BADLY,
}


class Tail:
    """The position of one reader of a topic: the messages themselves stay in the log.

    Each queue is read in its order, in turn with the others. For the store's thread.

    Args:
        queue_ids: the queues to read; by default all, including later ones.
        offset: where to begin, in each queue or by queue; by default, after the existing messages.

    Attributes:
        wake: called when messages have arrived, or the store is closed.
        is_open: returns whether the store is open.
    """

    def __init__(
        self,
        reads: LiveReads,
        topic: str,
        queue_ids: Iterable[int] | None = None,
        offset: int | Mapping[int, int] | None = None,
        *,
        tags: str | None = None,
    ) -> None:
        check_topic_name(topic)
        reads.catch_up()
        self._reads, self._topic, self._tags = reads, topic, tags
        self._is_for_all = queue_ids is None
        chosen = list(reads.queues(topic) if queue_ids is None else queue_ids)
        self._next = {queue_id: self._start(queue_id, offset) for queue_id in chosen}
        self._turns = dict.fromkeys(chosen)  # in order
        self.wake: Callable[[], object] = _nobody
        self.is_open = True
        reads.arrivals.listen(topic, self)

    def _start(self, queue_id: int, offset: int | Mapping[int, int] | None) -> int:
        if isinstance(offset, Mapping):
            offset = offset.get(queue_id)
        if offset is None:
            return self._reads.queue(self._topic, queue_id).max_offset
        return offset

    @property
    def offsets(self) -> dict[int, int]:
        """The next offset, by queue."""
        return dict(self._next)

    @property
    def is_behind(self) -> bool:
        """Return whether there may be something to read now."""
        return bool(self._turns)

    def read(self) -> LiveGetResult:
        """Read some messages of the next queue in turn; perhaps none.

        Call it only if `is_behind`.
        """
        queue_id = next(iter(self._turns))
        del self._turns[queue_id]
        result = self._reads.get(self._topic, queue_id, self._next[queue_id], tags=self._tags)
        if result.status not in _AT_END:
            self._next[queue_id] = result.next_offset
            if result.next_offset < result.max_offset:
                self._turns[queue_id] = None
        return result

    def arrived(self, queue_id: int, max_offset: int) -> None:
        if queue_id not in self._next:
            if not self._is_for_all:
                return
            self._next[queue_id] = 0
        if max_offset > self._next[queue_id] and queue_id not in self._turns:
            self._turns[queue_id] = None
            self.wake()

    def closed(self) -> None:
        self.is_open = False
        self.wake()


def _nobody() -> None:
    """Wake nobody: the tail is not being followed yet."""


class Following:
    """Yield the messages of a tail until the store is closed.

    Other tasks get their turn in between, however much there is to read. Waiting may be cancelled,
    and resumed.
    """

    def __init__(self, tail: Tail) -> None:
        self._tail = tail
        self._records: Iterator[Record] = iter(())
        self._event = asyncio.Event()
        tail.wake = self._event.set

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        while (record := next(self._records, None)) is None:
            await asyncio.sleep(0)
            if not self._tail.is_open:
                raise StopAsyncIteration
            self._event.clear()
            if self._tail.is_behind:
                self._records = iter(self._tail.read().records)
            else:
                await self._event.wait()
        return record


def follow_blocking(
    tail: Tail, lock: AbstractContextManager[object], timeout: float | None = None
) -> Generator[Record]:
    """Yield the messages of a tail of a store that has other threads.

    It ends when the store is closed, or when no message has arrived for `timeout` seconds.

    Args:
        lock: held while the store is queried.
    """
    event = threading.Event()
    tail.wake = event.set
    while tail.is_open:
        event.clear()
        while True:
            with lock:
                result = tail.read() if tail.is_open and tail.is_behind else None
            if result is None:
                break
            yield from result.records
        if tail.is_open and not event.wait(timeout):
            return
