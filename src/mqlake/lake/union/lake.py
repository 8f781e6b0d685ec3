"""One version of a lake table: its files, and how much of which logs they contain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mqlake.lake.tables.committed_end import CommittedEnd
from mqlake.query.reading.conditions import Selection


@dataclass(frozen=True)
class LakeFile:
    """A Parquet file of a table.

    Attributes:
        topic: the topic of all its rows, if the file has no such column.
        deleted: numbers of rows that were deleted, ascending; None without any.
        later: the path to which the file may be moved.
        ids: field ids of columns. A file that has ids is read by them, whatever its names are.
    """

    path: str
    size: int
    topic: str | None = None
    deleted: Any = None
    later: str | None = None
    ids: Mapping[str, int] | None = None


class Lake(Protocol):
    """A table as it was when it was opened; later commits do not change it."""

    @property
    def root(self) -> str:
        """The directory or URL of the table."""
        ...

    @property
    def columns(self) -> Sequence[str]:
        """The table's columns."""
        ...

    def last_batch(self, follower: str) -> int:
        """Return the number of the follower's newest batch in the table, -1 without a batch."""
        ...

    def end(self, follower: str) -> CommittedEnd | None:
        """Return where that batch ends in the log; None if the table does not record it."""
        ...

    def files(self, selection: Selection) -> list[LakeFile]:
        """Return the files that may have rows of a selection."""
        ...

    def has_topic(self, topic: str) -> bool:
        """Return whether any file may have rows of a topic."""
        ...
