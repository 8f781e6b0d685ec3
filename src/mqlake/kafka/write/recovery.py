"""The walk of a recovery: indexes, producers and leader epochs from a segment's batches.

Upstream: `LogSegment.recover`. Rules: docs/formats/kafka/log_file.md, "Recovery".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlake.errors import FormatError
from mqlake.formats.kafka.batch import CONTROL, MAGIC_V2, MAX_INT, TRANSACTIONAL, Batch
from mqlake.kafka.batches.kernel import is_compiled
from mqlake.kafka.batches.log_file import LogFile
from mqlake.kafka.errors import OffsetOverflowError, TransactionStateError
from mqlake.kafka.index.builder import IndexBuilder
from mqlake.kafka.index.transaction_index import TransactionIndex
from mqlake.kafka.state.leader_epochs import LeaderEpochs
from mqlake.kafka.state.producer_state import ProducerState

if TYPE_CHECKING:
    from mqlake.kafka.batches.columns import BatchColumns


class Recovery:
    """What one walk brings forward.

    Attributes:
        valid: bytes of good log seen so far.
        fault: why the walk ended before the log did; None for a log that is merely torn.
    """

    def __init__(
        self,
        log: LogFile,
        base_offset: int,
        index: IndexBuilder,
        transactions: TransactionIndex,
        producers: ProducerState,
        epochs: LeaderEpochs,
    ) -> None:
        self.valid = 0
        self.fault: str | None = None
        self._log = log
        self._base_offset = base_offset
        self._index = index
        self._transactions = transactions
        self._producers = producers
        self._epochs = epochs

    def run(self) -> None:
        """Go over all good batches.

        Raises:
            OffsetOverflowError, InvalidOffsetError, FullIndexError, TransactionStateError: a batch
                that is whole but cannot be in this segment.
        """
        if is_compiled(self._log.file):
            from mqlake.kafka.batches.scan import BatchScan

            scan = BatchScan(self._log.file)
            for batches in scan:
                self._take_in_rows(batches.rows)
                if self.fault is not None:
                    return
            self.fault = scan.fault
        else:
            walk = self._log.batches(check=True)
            for batch in walk:
                self._take_in(batch)
                if self.fault is not None:
                    return
            self.fault = walk.fault

    def _take_in(self, batch: Batch) -> None:
        if not 0 <= batch.last_offset - self._base_offset <= MAX_INT:
            raise OffsetOverflowError(
                f"{self._log.name}: offset {batch.last_offset} is not within 2^31 of the base"
                f" {self._base_offset}"
            )
        self._index.add(batch)
        self.valid = batch.end
        if batch.magic < MAGIC_V2:
            return
        self._epochs.take_in(batch)
        try:
            aborted = self._producers.update(batch, self._log.records)
        except FormatError as error:
            self.fault = str(error)
            return
        if aborted is not None:
            self._transactions.append(aborted)

    def _take_in_rows(self, rows: BatchColumns) -> None:
        if not self._are_in_range(rows):
            for batch in _each(rows):
                self._take_in(batch)
                if self.fault is not None:
                    return
            return
        count, error = self._update_producers(rows)
        taken = rows[:count]
        self._index.add_rows(taken)
        self.valid = int(taken["position"][-1]) + int(taken["size"][-1])
        self._epochs.take_in_rows(taken)
        if isinstance(error, TransactionStateError):
            raise error
        self.fault = None if error is None else str(error)

    def _update_producers(
        self, rows: BatchColumns
    ) -> tuple[int, FormatError | TransactionStateError | None]:
        """Bring the producers forward; return how many batches count, and what the last one has."""
        is_plain = not (rows["attributes"] & (TRANSACTIONAL | CONTROL)).any()
        if is_plain and not self._producers.has_open_transaction():
            self._producers.update_rows(rows)
            return len(rows), None
        for number, batch in enumerate(_each(rows)):
            try:
                aborted = self._producers.update(batch, self._log.records)
            except (FormatError, TransactionStateError) as error:
                return number + 1, error
            if aborted is not None:
                self._transactions.append(aborted)
        return len(rows), None

    def _are_in_range(self, rows: BatchColumns) -> bool:
        """Return whether all offsets can be in the segment, and all batches know their
        producers.
        """
        offsets = rows["last_offset"]
        return (
            int(rows["magic"].min()) >= MAGIC_V2
            and int(offsets.min()) >= self._base_offset
            and int(offsets.max()) <= self._base_offset + MAX_INT
        )


def _each(rows: BatchColumns) -> list[Batch]:
    from mqlake.kafka.batches.scan import each

    return each(rows)
