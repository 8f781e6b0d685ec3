"""Sort a batch of rows by topic and UTC day of the store time."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Partition = tuple[str, str]
"""Topic, and day as YYYY-MM-DD."""

_DAY = 86_400_000_000
_EPOCH = date(1970, 1, 1)
_FEW = 1 << 16


@dataclass(frozen=True)
class Sorted:
    """The rows of a batch sorted by partition; within one, they keep their order.

    Attributes:
        order: row numbers, sorted; None if the rows are sorted already.
        parts: each partition with its first row and its number of rows.
    """

    order: Any
    parts: list[tuple[Partition, int, int]]

    def rows(self, batch: Any) -> Any:
        """Return the batch with its rows in this order."""
        return batch if self.order is None else batch.take(self.order)


def sort(batch: Any) -> Sorted:
    """Sort a batch with the columns `topic` and `storeTimestamp`."""
    topics = batch.column("topic").dictionary_encode()
    times = batch.column("storeTimestamp").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    days = times.to_numpy(zero_copy_only=False) // _DAY
    first, codes = int(days.min()), topics.indices.to_numpy(zero_copy_only=False)
    span = int(days.max()) - first + 1
    numbers = codes.astype(np.int64) * span + (days - first)
    keys, ranks, counts = _ranked(numbers)
    parts: list[tuple[Partition, int, int]] = []
    at = 0
    for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
        topic = topics.dictionary[key // span].as_py()
        day = (_EPOCH + timedelta(days=first + key % span)).isoformat()
        parts.append(((topic, day), at, count))
        at += count
    order = None if len(parts) == 1 else pa.array(np.argsort(ranks, kind="stable"))
    return Sorted(order, parts)


def _ranked(
    numbers: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the distinct numbers, ascending, a rank for each number, and how often each occurs.

    Ranks are as small as possible: NumPy sorts small integers without comparing them.
    """
    if int(numbers.max()) < _FEW:
        counts = np.bincount(numbers)
        keys = np.flatnonzero(counts)
        return keys, numbers.astype(np.uint16), counts[keys]
    keys, inverse, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    ranks = inverse.reshape(-1)
    return keys, ranks.astype(np.uint16) if len(keys) <= _FEW else ranks, counts
