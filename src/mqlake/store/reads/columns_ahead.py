"""Columns of messages that are read in small steps, created for many steps in one call.

Creating a batch of 32 rows takes twice as long as its rows do. (Records gain nothing: each costs
the same, however many are decoded.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from mqlake.dispatch.kernel import Kernel

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Longs

_MOST_KEPT = 64

Kept = deque["ColumnsAhead"]
"""The columns of all queues that have a batch, the newest last."""


class ColumnsAhead:
    """The columns of consecutive messages of a queue in one segment.

    If consecutive steps request them, they are also created for all following steps.

    Args:
        at, sizes: positions and sizes of the messages in the segment.
    """

    def __init__(self, at: Longs, sizes: Longs, kernel: Kernel, kept: Kept) -> None:
        self._at, self._sizes, self._kernel, self._kept = at, sizes, kernel, kept
        self._batch: Any = None
        self._first, self._next = 0, -1

    def rows(self, buffer: Bytes, start: int, stop: int) -> Any:
        """Return a `pyarrow.RecordBatch` of the messages from number `start` to `stop`.

        Args:
            buffer: the segment's.
        """
        is_next, self._next = start == self._next, stop
        if not is_next:
            self._batch = None
            return to_arrow()(buffer, self._at[start:stop], self._sizes[start:stop], self._kernel)
        if self._batch is None:
            self._keep()
            self._first = start
            self._batch = to_arrow()(buffer, self._at[start:], self._sizes[start:], self._kernel)
        rows = self._batch.slice(start - self._first, stop - start)
        if stop == len(self._at):
            self._batch = None
        return rows

    def forget(self) -> None:
        """Release the batch."""
        self._batch = None

    def _keep(self) -> None:
        if self not in self._kept:
            while len(self._kept) >= _MOST_KEPT:
                self._kept.popleft().forget()
            self._kept.append(self)


@cache
def to_arrow() -> Callable[..., Any]:
    """Return `mqlake.dispatch.messages.to_arrow`, which is imported only if columns are
    requested.
    """
    from mqlake.dispatch.messages import to_arrow

    return to_arrow
