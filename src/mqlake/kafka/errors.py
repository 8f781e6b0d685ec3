"""Errors of segments and indexes, by the names of Kafka's own."""

from __future__ import annotations

from mqlake.errors import StoreError


class CorruptIndexError(StoreError):
    """An index that contradicts itself. Upstream: CorruptIndexException."""


class InvalidOffsetError(StoreError):
    """An offset that does not go up. Upstream: InvalidOffsetException."""


class OffsetOverflowError(StoreError):
    """An offset too far from its segment's base. Upstream: LogSegmentOffsetOverflowException."""


class FullIndexError(StoreError):
    """An index that has no room. Upstream: IllegalArgumentException."""


class TransactionStateError(StoreError):
    """Batches that no producer writes in this order. Upstream: InvalidTxnStateException."""
