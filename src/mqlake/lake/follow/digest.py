"""A checksum over messages that does not depend on their order."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from typing import Any
from zlib import crc32

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

COUNTED = ("topic", "queueId", "queueOffset", "storeTimestamp", "physicalOffset", "body")
"""Columns that a checksum covers, if the table has them."""

_MASK = (1 << 64) - 1

Longs = npt.NDArray[np.uint64]


class TableDigest(msgspec.Struct, frozen=True, rename="camel"):
    """The number of messages, and the sum of their hashes modulo 2^64."""

    count: int = 0
    checksum: int = 0

    def __add__(self, other: TableDigest) -> TableDigest:
        return TableDigest(self.count + other.count, (self.checksum + other.checksum) & _MASK)


def digest(batch: Any, columns: tuple[str, ...]) -> TableDigest:
    """Return the digest of the rows of an Arrow batch or table."""
    hashes = np.zeros(batch.num_rows, np.uint64)
    for name in columns:
        column = batch.column(name)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        hashes = _mixed(hashes * np.uint64(31) + _hashes(column))
    return TableDigest(batch.num_rows, int(hashes.sum(dtype=np.uint64)) & _MASK)


def _hashes(column: Any) -> Longs:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64()).to_numpy(zero_copy_only=False).astype(np.uint64)
    if not pa.types.is_dictionary(column.type) and not _is_binary(column.type):
        coded = column.dictionary_encode()
        return _hashes(coded.dictionary.cast(pa.binary()))[coded.indices.to_numpy()]
    values = column.to_pylist()
    return np.fromiter((crc32(value) for value in values), np.uint64, len(values))


def _is_binary(type_: Any) -> bool:
    return pa.types.is_binary(type_) or pa.types.is_large_binary(type_)


def _mixed(values: Longs) -> Longs:
    """Spread each bit over all bits (SplitMix64's finalizer)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
