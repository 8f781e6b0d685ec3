"""A source: where a query is, which tasks read what is next, and what one task reads.

An engine, such as Spark, stores the positions, and runs the tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar

from mqlake.query.reading.conditions import MOST, Selection

T = TypeVar("T")

Written = dict[str, Any]
"""A position as JSON, as it is in checkpoints."""


class BatchQuery(Protocol[T]):
    """A batch query. It is pickled for tasks."""

    def plan(self, pushed: Selection) -> Sequence[T]:
        """Return the tasks; `pushed` are conditions from the engine's filters."""
        ...

    def read(self, task: T, schema: Any) -> Iterator[Any]:
        """Yield the rows of a task as `pyarrow.RecordBatch`es of an Arrow schema."""
        ...


class Stream(Protocol[T]):
    """A streaming query: micro-batches from one position to the next. It is pickled for tasks."""

    @property
    def most(self) -> int | None:
        """The most messages of a micro-batch that options allow; None if they set no limit.

        `MOST` if other options limit micro-batches.
        """
        ...

    @property
    def seen(self) -> Written | None:
        """The position of the newest message that is known; None if none is."""
        ...

    def position(self, after: Written | None = None, most: int | None = None) -> Written:
        """Return where the micro-batch after a position ends; `after` if there is nothing new.

        Args:
            after: None to return where a new query starts.
            most: as the property `most`.
        """
        ...

    def stop_at_end(self) -> None:
        """Let the query end where the newest message is now."""
        ...

    def plan(self, start: Written, end: Written) -> Sequence[T]:
        """Return the tasks of a micro-batch, which read the same whenever it is planned."""
        ...

    def read(self, task: T, schema: Any) -> Iterator[Any]:
        """Yield the rows of a task as `pyarrow.RecordBatch`es of an Arrow schema."""
        ...

    def done(self, end: Written) -> None:
        """Note that the engine has finished all micro-batches before a position."""


def most_of(offsets: int | None, *others: int | None) -> int | None:
    """Return the limit of micro-batches: of messages, or `MOST` if another option limits them."""
    return MOST if offsets is None and any(other is not None for other in others) else offsets
