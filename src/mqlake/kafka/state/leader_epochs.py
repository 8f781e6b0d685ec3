"""Which leader wrote from which offset on. Upstream: `LeaderEpochFileCache`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mqlake.formats.kafka.batch import Batch
from mqlake.formats.kafka.checkpoint_file import LeaderEpoch

if TYPE_CHECKING:
    from mqlake.kafka.batches.columns import BatchColumns


class LeaderEpochs:
    """The leader epochs of a partition, ascending in epoch and offset.

    Attributes:
        entries: as `leader-epoch-checkpoint` has them.
    """

    def __init__(self, entries: Iterable[LeaderEpoch] = ()) -> None:
        self.entries = list(entries)

    def take_in(self, batch: Batch) -> None:
        """Note a batch that is the first of a later leader."""
        self._note(batch.leader_epoch, batch.base_offset)

    def take_in_rows(self, rows: BatchColumns) -> None:
        """Note batches, as rows: only the first of neighbours of one epoch can be news."""
        import numpy as np

        epochs = rows["leader_epoch"]
        for number in (0, *(np.flatnonzero(np.diff(epochs)) + 1).tolist()):
            row = rows[number]
            self._note(int(row["leader_epoch"]), int(row["base_offset"]))

    def assign(self, entry: LeaderEpoch) -> None:
        """Add an entry, and drop those that contradict it."""
        last = self.entries[-1] if self.entries else None
        if last and entry.epoch == last.epoch and entry.start_offset >= last.start_offset:
            return
        while self.entries and (
            self.entries[-1].epoch >= entry.epoch
            or self.entries[-1].start_offset >= entry.start_offset
        ):
            self.entries.pop()
        self.entries.append(entry)

    def truncate_to(self, offset: int) -> None:
        """Drop the epochs that begin at an offset or above. Upstream: `truncateFromEnd`."""
        self.entries = [entry for entry in self.entries if entry.start_offset < offset]

    def _note(self, epoch: int, offset: int) -> None:
        if epoch >= 0 and (not self.entries or epoch > self.entries[-1].epoch):
            self.assign(LeaderEpoch(epoch, offset))
