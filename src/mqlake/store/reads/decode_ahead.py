"""Messages that are read in small steps, decoded for many steps at once.

A call of a kernel and of a decoder costs as much as a dozen messages do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from mqlake.dispatch.decode import decode
from mqlake.dispatch.kernel import Kernel
from mqlake.formats.record import Record

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Longs

_MOST_KEPT = 64

Kept = deque["Stretch"]
"""The stretches of all queues that are decoded ahead, the newest last."""


class Stretch:
    """Messages of one segment that follow each other in a queue.

    Where a step asks for the form that the step before it has asked for, those of all steps behind
    are decoded, too. No message is handed out twice: who comes out of order gets his own.

    Args:
        at, sizes: where they are in the segment.
    """

    def __init__(self, at: Longs, sizes: Longs, kernel: Kernel, kept: Kept) -> None:
        self._at, self._sizes, self._kernel, self._kept = at, sizes, kernel, kept
        self._records = _Ahead(decode, _cut_list)
        self._batch = _Ahead(_to_arrow, _cut_batch)

    def records(self, buffer: Bytes, start: int, stop: int) -> list[Record]:
        """Return the records from number `start` to `stop`; `buffer` is the segment's."""
        return self._take(self._records, buffer, start, stop)

    def to_arrow(self, buffer: Bytes, start: int, stop: int) -> Any:
        """Return them as a `pyarrow.RecordBatch`."""
        return self._take(self._batch, buffer, start, stop)

    def forget(self) -> None:
        """Let go of what is decoded."""
        self._records.value = self._batch.value = None

    def _take(self, ahead: _Ahead, buffer: Bytes, start: int, stop: int) -> Any:
        is_next, ahead.next = start == ahead.next, stop
        if not is_next:
            ahead.value = None
            return ahead.decode(buffer, self._at[start:stop], self._sizes[start:stop], self._kernel)
        if ahead.value is None:
            self._keep()
            ahead.first = start
            ahead.value = ahead.decode(buffer, self._at[start:], self._sizes[start:], self._kernel)
        taken = ahead.cut(ahead.value, start - ahead.first, stop - ahead.first)
        if stop == len(self._at):
            ahead.value = None
        return taken

    def _keep(self) -> None:
        if self not in self._kept:
            while len(self._kept) >= _MOST_KEPT:
                self._kept.popleft().forget()
            self._kept.append(self)


class _Ahead:
    """What is decoded of a stretch in one form, from message `first` on; which comes next."""

    def __init__(self, decode: Callable[..., Any], cut: Callable[[Any, int, int], Any]) -> None:
        self.decode, self.cut = decode, cut
        self.value: Any = None
        self.first = 0
        self.next = -1


def _cut_list(records: list[Record], start: int, stop: int) -> list[Record]:
    return records[start:stop]


def _cut_batch(batch: Any, start: int, stop: int) -> Any:
    return batch.slice(start, stop - start)


def _to_arrow(*arguments: Any) -> Any:
    return to_arrow()(*arguments)


@cache
def to_arrow() -> Callable[..., Any]:
    """Return `mqlake.dispatch.messages.to_arrow`, not imported for who never asks for columns."""
    from mqlake.dispatch.messages import to_arrow

    return to_arrow
