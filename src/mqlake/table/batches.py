"""Read the tasks of a plan on threads, and yield their batches in log order."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import Any

from mqlake.query.store.read import read

Read = Callable[[Any, Any], Iterator[Any]]
"""Yields the `pyarrow.RecordBatch`es of a task, of an Arrow schema."""

_AHEAD = 2
"""Tasks that each thread reads before their batches are requested."""
MOST_AHEAD = 64 << 20
"""Bytes of a task's batches that a thread reads before they are requested: compressed bodies may be
a thousand times as long as what is stored.
"""


def read_tasks(
    tasks: Sequence[Any], schema: Any, keep: Any, threads: int, reader: Read | None = None
) -> Iterator[Any]:
    """Yield the `pyarrow.RecordBatch`es of tasks.

    Memory is bounded by the batches of two tasks for each thread, and by `MOST_AHEAD` for each
    task: the rest of it is read when it is requested.

    Args:
        schema: the Arrow schema of what is read.
        keep: a `pyarrow.compute.Expression` that rows must satisfy; None for all rows.
        reader: reads one task; by default, one of the log.

    Raises:
        StoreError: damage, or a deleted file, unless the options tolerate it.
    """
    waiting: deque[Future[tuple[list[Any], Iterator[Any]]]] = deque()
    remaining = iter(tasks)
    pool = ThreadPoolExecutor(threads, "mqlake-table")
    try:
        while True:
            for task in remaining:
                waiting.append(pool.submit(_read, reader or read, task, schema, keep))
                if len(waiting) >= threads * _AHEAD:
                    break
            if not waiting:
                return
            yield from chain(*waiting.popleft().result())
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _read(reader: Read, task: Any, schema: Any, keep: Any) -> tuple[list[Any], Iterator[Any]]:
    """Return the first batches of a task, and those that are still to be read."""
    batches, found, size = _chosen(reader(task, schema), keep), list[Any](), 0
    for batch in batches:
        found.append(batch)
        size += batch.nbytes
        if size >= MOST_AHEAD:
            break
    return found, batches


def _chosen(batches: Iterator[Any], keep: Any) -> Iterator[Any]:
    for batch in batches:
        if keep is None:
            yield batch
        elif (chosen := batch.filter(keep)).num_rows:
            yield chosen
