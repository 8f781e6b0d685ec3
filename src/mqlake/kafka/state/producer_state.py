"""The state of a partition's producers and their transactions.

Upstream: `ProducerStateManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from mqlake.formats.kafka.batch import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Batch,
    Record,
)
from mqlake.formats.kafka.control_record import ControlType, end_marker
from mqlake.formats.kafka.producer_snapshot import ProducerEntry
from mqlake.formats.kafka.transaction_index import AbortedTransaction
from mqlake.kafka.errors import TransactionStateError

if TYPE_CHECKING:
    from mqlake.kafka.batches.columns import BatchColumns

_NONE = -1


class Completed(NamedTuple):
    """A transaction that has ended: its first offset, its marker's, and how."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class ProducerState:
    """Producers and open transactions as of an offset, brought forward batch by batch.

    Attributes:
        producers: by producer id.
        end_offset: the offset after the last batch taken in.
    """

    def __init__(self, entries: Iterable[ProducerEntry] = (), end_offset: int = 0) -> None:
        self.producers = {entry.producer_id: entry for entry in entries}
        self.end_offset = end_offset
        self._open = {
            entry.transaction_first_offset: entry.producer_id
            for entry in self.producers.values()
            if entry.transaction_first_offset != _NONE
        }
        # Their first offsets, smallest on top, with some of transactions that have ended.
        self._firsts = sorted(self._open)

    def update(
        self, batch: Batch, read: Callable[[Batch], list[Record]]
    ) -> AbortedTransaction | None:
        """Take in the next batch; return the transaction that it aborts.

        `read` gives the records of a batch, and is asked only for those of control batches.
        Nothing is checked that the leader has checked when the batch came in.

        Raises:
            FormatError: a control batch without a readable marker.
            TransactionStateError: a plain batch in the middle of its producer's transaction.
        """
        aborted = self._take_in(batch, read) if batch.has_producer_id else None
        self.end_offset = batch.next_offset
        return aborted

    def update_rows(self, rows: BatchColumns) -> None:
        """Take in batches, as rows, none of them of a transaction, of those without one open.

        Then only the last batch of each producer counts.
        """
        import numpy as np

        from mqlake.kafka.batches.scan import each

        with_producer = rows[rows["producer_id"] > NO_PRODUCER_ID]
        ids = with_producer["producer_id"]
        _, firsts = np.unique(ids, return_index=True)
        _, lasts = np.unique(ids[::-1], return_index=True)
        # A snapshot has the producers in the order in which they came.
        order = np.argsort(firsts)
        for batch in each(with_producer[len(ids) - 1 - lasts[order]]):
            entry = self.producers.get(batch.producer_id) or _unknown(batch.producer_id)
            self.producers[batch.producer_id] = self._with_data(entry, batch)
        self.end_offset = int(rows["last_offset"][-1]) + 1

    def has_open_transaction(self) -> bool:
        """Return whether any producer's transaction has begun and not ended."""
        return bool(self._open)

    def first_open_offset(self) -> int | None:
        """Return the first offset of the oldest open transaction.

        Upstream: `firstUndecidedOffset`.
        """
        while self._firsts and self._firsts[0] not in self._open:
            heappop(self._firsts)
        return self._firsts[0] if self._firsts else None

    def _take_in(
        self, batch: Batch, read: Callable[[Batch], list[Record]]
    ) -> AbortedTransaction | None:
        known = self.producers.get(batch.producer_id)
        entry = known or _unknown(batch.producer_id)
        if not batch.is_control:
            self.producers[batch.producer_id] = self._with_data(entry, batch)
            return None
        records = read(batch)
        if not records:
            # The cleaner has removed a whole transaction.
            self.producers[batch.producer_id] = entry
            return None
        completed, updated = _with_marker(entry, batch, records[0])
        self.producers[batch.producer_id] = updated
        return None if completed is None else self._complete(completed)

    def _with_data(self, entry: ProducerEntry, batch: Batch) -> ProducerEntry:
        first = entry.transaction_first_offset
        if first != _NONE and not batch.is_transactional:
            raise TransactionStateError(
                f"offset {batch.base_offset} of producer {batch.producer_id} is outside of the"
                f" transaction that it began at {first}"
            )
        if first == _NONE and batch.is_transactional:
            first = batch.base_offset
            self._open[first] = batch.producer_id
            heappush(self._firsts, first)
        return entry._replace(
            epoch=batch.producer_epoch,
            last_sequence=batch.last_sequence,
            last_offset=batch.last_offset,
            offset_delta=batch.last_offset - batch.base_offset,
            timestamp=batch.max_timestamp,
            transaction_first_offset=first,
        )

    def _complete(self, completed: Completed) -> AbortedTransaction | None:
        self._open.pop(completed.first_offset, None)
        undecided = self.first_open_offset()
        stable = completed.last_offset + 1 if undecided is None else undecided
        if not completed.is_aborted:
            return None
        return AbortedTransaction(
            completed.producer_id, completed.first_offset, completed.last_offset, stable
        )


def _unknown(producer_id: int) -> ProducerEntry:
    return ProducerEntry(
        producer_id=producer_id,
        epoch=NO_PRODUCER_EPOCH,
        last_sequence=NO_SEQUENCE,
        last_offset=_NONE,
        offset_delta=0,
        timestamp=NO_TIMESTAMP,
        coordinator_epoch=_NONE,
        transaction_first_offset=_NONE,
    )


def _with_marker(
    entry: ProducerEntry, batch: Batch, record: Record
) -> tuple[Completed | None, ProducerEntry]:
    marker = end_marker(record)
    completed = None
    if entry.transaction_first_offset != _NONE:
        completed = Completed(
            batch.producer_id,
            entry.transaction_first_offset,
            batch.base_offset,
            marker.kind is ControlType.ABORT,
        )
    if entry.epoch != batch.producer_epoch:
        # What came under another epoch is no longer compared with.
        entry = entry._replace(last_sequence=NO_SEQUENCE, last_offset=_NONE, offset_delta=0)
    return completed, entry._replace(
        epoch=batch.producer_epoch,
        timestamp=record.timestamp,
        coordinator_epoch=marker.coordinator_epoch,
        transaction_first_offset=_NONE,
    )
