"""What a program that follows stores says about itself."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from mqlake.jobs.local import Progress
from mqlake.metrics.metric import Sample, counter, gauge
from mqlake.metrics.observed import labels_of
from mqlake.spark.follow.micro_batch import FollowTotals
from mqlake.spark.follow.query import TITLE

_LABELS = ("store",)

BATCHES = counter("mqlake_follow_batches_total", "Micro-batches with messages.", "", _LABELS)
MESSAGES = counter(
    "mqlake_follow_messages_total", "Messages that were written to the table.", "", _LABELS
)
FILES = counter("mqlake_follow_files_total", "Data files that were written.", "", _LABELS)
WRITTEN = counter(
    "mqlake_follow_written_total", "Bytes of data files that were written.", "bytes", _LABELS
)
MERGED = counter(
    "mqlake_follow_merged_files_total",
    "Small files that were merged into others.",
    "",
    _LABELS,
)
DEAD_LETTERS = counter(
    "mqlake_follow_dead_letters_total", "Rows that were added to the dead letters.", "", _LABELS
)
POSITION = gauge(
    "mqlake_follow_position", "Physical offset up to which the table has the log.", "", _LABELS
)
LAG = gauge(
    "mqlake_follow_lag",
    "Bytes of the log past `mqlake_follow_position`, when Spark last looked.",
    "bytes",
    _LABELS,
)


class FollowProgress:
    """One store that is followed, for another thread to read.

    Attributes:
        totals: what was done since the start.
    """

    def __init__(self, store: str, shown: Progress | None) -> None:
        self.totals = FollowTotals()
        self._store, self._shown = store, shown
        self._position: tuple[int, int] | None = None

    def report(self, title: str, done: int, total: int) -> None:
        """Note how far the table is (`Progress`), and show it if that is wanted.

        Other progress, such as that of the first batch, is only shown.
        """
        if title == TITLE:
            self._position = done, total
        if self._shown is not None:
            self._shown(title, done, total)

    def samples(self) -> list[Sample]:
        """Return all samples."""
        now, labels = msgspec.structs.replace(self.totals), (self._store,)
        found = [
            Sample(BATCHES, now.batches, labels),
            Sample(MESSAGES, now.messages, labels),
            Sample(FILES, now.files, labels),
            Sample(WRITTEN, now.bytes_written, labels),
            Sample(MERGED, now.files_merged, labels),
            Sample(DEAD_LETTERS, now.dead_letters, labels),
        ]
        if (position := self._position) is not None:
            done, total = position
            found += [Sample(POSITION, done, labels), Sample(LAG, total - done, labels)]
        return found


class ObservedFollower:
    """A program that follows stores, as it is monitored.

    Args:
        others: returns the samples of what runs beside it; None if nothing does.
    """

    def __init__(
        self,
        stores: Sequence[FollowProgress],
        others: Callable[[], Awaitable[Sequence[Sample]]] | None = None,
    ) -> None:
        self._stores, self._others = stores, others
        self.labels: Mapping[str, str] = labels_of("follow", socket.gethostname(), "")

    def not_ready(self) -> str | None:
        """Return None: nobody sends requests to it."""
        return None

    async def samples(self) -> Sequence[Sample]:
        """Return all samples."""
        found = [sample for each in self._stores for sample in each.samples()]
        return found if self._others is None else [*found, *await self._others()]
