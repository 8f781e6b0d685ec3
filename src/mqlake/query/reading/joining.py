"""Join small Arrow batches, because each costs Spark as much as a few thousand rows."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

_FEW = 4_000
"""Batches with fewer rows are joined."""

_TOGETHER = 10_000

_LARGE = 1 << 20
"""Bytes that make a batch large enough, however few rows it has."""


def put_together(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows of `pyarrow.RecordBatch`es in their order, in sufficiently large batches."""
    waiting: list[Any] = []
    rows = size = 0
    for batch in batches:
        if not waiting and (batch.num_rows >= _FEW or batch.nbytes >= _LARGE):
            yield batch
            continue
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _TOGETHER or size >= _LARGE:
            yield _joined(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[Any]) -> Any:
    import pyarrow as pa

    if len(batches) == 1:
        return batches[0]
    (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return whole
