"""Read the tasks of a plan on threads, and yield their batches in log order."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from mqlake.query.store.read import read

Read = Callable[[Any, Any], Iterator[Any]]
"""Yields the `pyarrow.RecordBatch`es of a task, of an Arrow schema."""

_AHEAD = 2
"""Tasks that each thread reads before their batches are requested."""


def read_tasks(
    tasks: Sequence[Any], schema: Any, keep: Any, threads: int, reader: Read | None = None
) -> Iterator[Any]:
    """Yield the `pyarrow.RecordBatch`es of tasks.

    Memory is bounded by the batches of two tasks for each thread.

    Args:
        schema: the Arrow schema of what is read.
        keep: a `pyarrow.compute.Expression` that rows must satisfy; None for all rows.
        reader: reads one task; by default, one of the log.

    Raises:
        StoreError: damage, or a deleted file, unless the options tolerate it.
    """
    waiting: deque[Future[list[Any]]] = deque()
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
            yield from waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _read(reader: Read, task: Any, schema: Any, keep: Any) -> list[Any]:
    batches = reader(task, schema)
    if keep is None:
        return list(batches)
    return [chosen for batch in batches if (chosen := batch.filter(keep)).num_rows]
