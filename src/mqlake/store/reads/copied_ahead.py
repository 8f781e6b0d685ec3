"""Records that were found ahead, copied consecutively for many reads at once.

A read is then a slice. The copies of all queues share one allocation, a buffer for each queue. It
is never given back: touching new memory each time costs more than the copying.
"""

from __future__ import annotations

from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from mqlake.dispatch.kernel import Kernel

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Longs

BUFFER: Final = 1 << 18
"""Most bytes of one copy."""
MOST_MESSAGES: Final = 1024
"""Most messages of one copy."""
MOST_COPIES: Final = 128
"""Of all queues together: 32 MiB. The system provides the pages as they are used."""
_RECENT: Final = 1 << 14
"""A copy that was used within so many reads of all queues keeps its buffer."""
OWNER, FIRST, STOP, LOW, HIGH, VERSION = range(6)
"""Columns of `CopyTable.copies`: the number of the copy in a buffer, 0 for none; the queue offsets
of its first message and after its last one; the queue's least and greatest offset, which are those
of a `LiveReads.version`."""


class CopiedMessages(NamedTuple):
    """Consecutive messages of a queue.

    Attributes:
        data: their records, consecutively; overwritten by the next read.
        messages: how many.
        next_offset: the queue offset after them.
        min_offset, max_offset: of the queue.
    """

    data: memoryview
    messages: int
    next_offset: int
    min_offset: int
    max_offset: int


class CopyTable(NamedTuple):
    """All copies, as kernels see them.

    Attributes:
        data: the buffers, `BUFFER` bytes each, u8[MOST_COPIES * BUFFER].
        ends: for each buffer the bytes before each message, and of all, i8[MOST_COPIES,
            MOST_MESSAGES + 1].
        copies: for each buffer what is in it, i8[MOST_COPIES, 6].
    """

    data: Bytes
    ends: Longs
    copies: Longs


class CopyBuffers:
    """The buffers that the queues of a store share.

    Attributes:
        reads: the number of reads of all copies, and of those that got no buffer. If these did not
            count, copies that nobody reads any more would keep all buffers.
    """

    def __init__(self) -> None:
        self.reads = 0
        self.numbers = count(1)
        self._free = list(range(MOST_COPIES))
        self._used: dict[CopiedAhead, None] = {}

    @cached_property
    def table(self) -> CopyTable:
        """The buffers and what is in them."""
        return CopyTable(
            np.empty(MOST_COPIES * BUFFER, np.uint8),
            np.zeros((MOST_COPIES, MOST_MESSAGES + 1), np.int64),
            np.zeros((MOST_COPIES, 6), np.int64),
        )

    def take(self, copy: CopiedAhead) -> int | None:
        """Return the number of a buffer, None if all are in use.

        The oldest copy loses its buffer if it was not used lately. If it was, taking its buffer
        would only force that queue to copy again.
        """
        if not self._free:
            oldest = next(iter(self._used))
            if self.reads - oldest.used < _RECENT:
                self.reads += 1
                return None
            oldest.forget()
        self._used[copy] = None
        return self._free.pop()

    def give_back(self, copy: CopiedAhead, buffer: int) -> None:
        """Let other queues have a buffer."""
        self.table.copies[buffer, OWNER] = 0
        del self._used[copy]
        self._free.append(buffer)

    def forget(self) -> None:
        """Give all buffers back."""
        for copy in list(self._used):
            copy.forget()


class CopiedAhead:
    """The records of messages of one segment that follow each other in a queue.

    As many as fit into a buffer are copied, from some queue offset on.

    Args:
        first: queue offset of the first message.
        at, sizes: where they are in the segment.
        sums: bytes of all messages before each, and of all.

    Attributes:
        buffer: the number of its buffer, None if it has none.
        number: unlike that of any other copy; another one whenever it gets a buffer.
        next_offset: queue offset after the last read of it; -1 if there was none.
        used: the number of the last read of it.
    """

    def __init__(
        self, first: int, at: Longs, sizes: Longs, sums: Longs, kernel: Kernel, all_: CopyBuffers
    ) -> None:
        self._base, self._at, self._sizes, self._sums = first, at, sizes, sums
        self._kernel, self._all = kernel, all_
        self.buffer: int | None = None
        self.number = 0
        self._first = self._stop = self.next_offset = -1
        self.used = 0

    def covers(self, start: int, stop: int) -> bool:
        """Say whether the messages from number `start` to `stop` are copied."""
        return self.buffer is not None and self._first <= start and stop <= self._stop

    def make(self, segment: Bytes, start: int, stop: int) -> bool:
        """Copy the messages from number `start` to `stop`, and those after; return whether it did.

        Args:
            segment: its bytes.
        """
        before: int = self._sums.item(start)
        fit = int(self._sums.searchsorted(before + BUFFER, "right")) - 1
        fit = min(fit, start + MOST_MESSAGES)
        if fit < stop:
            return False
        table = self._all.table
        if self.buffer is None:
            self.buffer = self._all.take(self)
            if self.buffer is None:
                return False
            self.number = next(self._all.numbers)
        buffer = self.buffer
        self.used, self._first, self._stop = self._all.reads, start, fit
        np.subtract(self._sums[start : fit + 1], before, out=table.ends[buffer, : fit + 1 - start])
        table.copies[buffer] = self.number, self._base + start, self._base + fit, 0, 0, 0
        self._kernel.copy_records(
            table.data[buffer * BUFFER :][:BUFFER],
            segment,
            self._at[start:fit],
            self._sizes[start:fit],
        )
        return True

    def take(self, start: int, stop: int, most_bytes: int) -> tuple[memoryview, int]:
        """Return the messages from number `start` to `stop`, all of them copied, and how many.

        Returns fewer, but at least one, if they have more than `most_bytes`.
        """
        buffer = self.buffer
        assert buffer is not None
        table = self._all.table
        ends = table.ends[buffer]
        start, stop = start - self._first, stop - self._first
        begin: int = ends.item(start)
        end: int = ends.item(stop)
        if end - begin > most_bytes:
            within = ends[start:stop].searchsorted(begin + most_bytes, "right")
            stop = start + max(1, int(within) - 1)
            end = ends.item(stop)
        self.note_read(self._base + self._first + stop)
        at = buffer * BUFFER
        return table.data[at + begin : at + end].data, stop - start

    def note_read(self, next_offset: int) -> None:
        """Note that the messages before a queue offset were read; without any left, give the buffer
        back.
        """
        self._all.reads = self.used = self._all.reads + 1
        self.next_offset = next_offset
        if next_offset == self._base + len(self._at):
            self.forget()

    def forget(self) -> None:
        """Give the buffer back."""
        if self.buffer is not None:
            self._all.give_back(self, self.buffer)
            self.buffer = None
