"""Which batches a consumer shows. Upstream: `IsolationLevel`, `CompletedFetch`."""

from __future__ import annotations

import enum
from collections.abc import Iterable

from mqlake.formats.kafka.batch import Batch
from mqlake.formats.kafka.transaction_index import AbortedTransaction


class Isolation(enum.StrEnum):
    """Kafka's `isolation.level`."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class AbortedBatches:
    """Tells the batches of aborted transactions, asked in the order of the log."""

    def __init__(self, transactions: Iterable[AbortedTransaction]) -> None:
        self._coming = sorted(transactions, key=_first_offset, reverse=True)
        # Producer → offset of the marker that ends its aborted transaction.
        self._current: dict[int, int] = {}

    def __contains__(self, batch: Batch) -> bool:
        if not batch.has_producer_id:
            return False
        while self._coming and self._coming[-1].first_offset <= batch.last_offset:
            transaction = self._coming.pop()
            self._current[transaction.producer_id] = transaction.last_offset
        end = self._current.get(batch.producer_id)
        return (
            end is not None
            and batch.is_transactional
            and not batch.is_control
            and batch.base_offset < end
        )


def _first_offset(transaction: AbortedTransaction) -> int:
    return transaction.first_offset
