"""What a partition derives from its batches: its leader epochs, and the state of its producers.

Upstream: `LeaderEpochFileCache`, `ProducerStateManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mqlake.formats.kafka.batch import MAGIC_V2, Batch
from mqlake.formats.kafka.checkpoint_file import LeaderEpoch
from mqlake.kafka.log.segment import LogSegment
from mqlake.kafka.log.transactions import ProducerReplay
from mqlake.kafka.state.leader_epochs import LeaderEpochs
from mqlake.kafka.state.producer_state import ProducerState
from mqlake.kafka.write.owned_segment import OwnedSegment
from mqlake.kafka.write.partition_files import PartitionFiles


class DerivedState:
    """The leader epochs and the producers at the end of a log, and the files that contain them.

    Until `rewind` was called, it has the leader epochs of the file, and no producers.

    Args:
        files: the files of the partition.

    Raises:
        FormatError: the file of the leader epochs cannot be read.
    """

    def __init__(self, files: PartitionFiles) -> None:
        self._files = files
        self._epochs = LeaderEpochs(files.read_epochs())
        self._producers = ProducerState()

    @property
    def leader_epochs(self) -> list[LeaderEpoch]:
        """The leader epochs, ascending."""
        return self._epochs.entries

    def take_in(self, batch: Batch, segment: OwnedSegment) -> None:
        """Note a batch that was appended to a segment.

        Raises:
            FormatError: the end of a transaction cannot be read.
            TransactionStateError: a plain batch in the middle of its producer's transaction.
            DiskError: the system refused a file.
        """
        if batch.magic < MAGIC_V2:
            return
        known = len(self._epochs.entries)
        self._epochs.take_in(batch)
        if len(self._epochs.entries) != known:
            self.write_epochs()
        aborted = self._producers.update(batch, segment.log.records)
        if aborted is not None:
            segment.transaction_index.append(aborted)

    def rewind(self, start: int, end: int, segments: Sequence[LogSegment]) -> None:
        """Return to the state at an offset. The file of the leader epochs stays as it is.

        Args:
            start: the first offset of the log.
            end: the offset.
            segments: the segments of the log, ascending.
        """
        self._epochs.truncate_to(end)
        self._producers = self._producers_at(start, end, segments)

    def drop_epochs(self) -> None:
        """Forget the leader epochs, because none of their batches is in the log."""
        self._epochs = LeaderEpochs()

    def recover(
        self,
        segment: OwnedSegment,
        start: int,
        before: Sequence[LogSegment],
        before_cut: Callable[[], object],
    ) -> int:
        """Recover a segment, and write the snapshot of the producers at its end.

        Args:
            start: the first offset of the log.
            before: the segments before it, ascending.
            before_cut: is called before the segment is cut.

        Returns:
            The bytes that were cut off.

        Raises:
            InvalidOffsetError: a batch that is whole cannot be in this segment.
        """
        producers = self._producers_at(start, segment.base_offset, before)
        cut = segment.recover(producers, self._epochs, before_cut)
        self._files.write_snapshot(producers)
        return cut

    def write_epochs(self) -> None:
        """Replace the file of the leader epochs durably."""
        self._files.write_epochs(self._epochs.entries)

    def write_snapshot(self, end: int) -> None:
        """Write the snapshot of the producers at the end of the log durably."""
        self._producers.end_offset = end
        self._files.write_snapshot(self._producers)

    def _producers_at(self, start: int, end: int, segments: Sequence[LogSegment]) -> ProducerState:
        files = self._files
        replay = ProducerReplay(files.snapshots(), files.read_snapshot, at_most=end, start=start)
        replay.forward(segments, end)
        return replay.state
