"""Read the messages of one task as Arrow batches."""

# pyright: basic, reportAttributeAccessIssue=false
# pyarrow has no types, and creates its functions when it is imported.

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mqlake.dispatch.adjacent import located
from mqlake.dispatch.arrow import to_arrow
from mqlake.jobs.bodies.plain_bodies import StoredBodies
from mqlake.query.live.brokers import Brokers
from mqlake.query.live.connection import connection
from mqlake.query.live.losses import LiveLosses
from mqlake.query.live.pulls import Chunk, Pulls
from mqlake.query.live.task import LiveTask
from mqlake.query.reading.compilation import tell_compilation
from mqlake.query.reading.joining import put_together
from mqlake.query.reading.log import logger
from mqlake.query.reading.memory import keep_freed_memory
from mqlake.query.store.columns import (
    TIMES,
    fitted,
    plain_batches,
    stored_columns,
    with_bodies,
)

log = logger()

_AT_ONCE = 4
"""Queues that a task pulls at the same time, because each pull waits for its broker."""


def read(task: LiveTask, schema: Any) -> Iterator[Any]:
    """Yield the messages of a task as `pyarrow.RecordBatch`es of an Arrow schema.

    Raises:
        ClientError: a broker does not answer.
        StoreError: messages are lost, unless that is tolerated.
    """
    keep_freed_memory()
    tell_compilation(log.warning)
    losses = LiveLosses(fail=task.fail_on_data_loss)
    needed = _needed(task, schema)
    stored = StoredBodies()
    made = (
        rows
        for broker_name, chunk in _chunks(task, losses)
        if len(columns := _columns(chunk, task, needed))
        for rows in (
            plain_batches(columns, schema, broker_name, stored)
            if task.decompress
            else (fitted(columns, schema, broker_name),)
        )
    )
    yield from put_together(made)
    losses.report()
    stored.report(log.warning)


def _chunks(task: LiveTask, losses: LiveLosses) -> Iterator[tuple[str, Chunk]]:
    """Yield the messages of a task's ranges, each with its broker's name.

    A few queues are pulled at the same time, also while the caller uses what is yielded.
    """
    shared = connection(task)
    brokers = Brokers(shared.instance, task.retry_timeout / 1000)
    waiting = deque(task.ranges)
    running: deque[tuple[Pulls, Future[Chunk | None]]] = deque()
    try:
        while waiting or running:
            while waiting and len(running) < _AT_ONCE:
                pulls = Pulls(brokers, task, waiting.popleft(), losses)
                running.append((pulls, shared.begin(pulls.chunk())))
            pulls, pulling = running[0]
            chunk = pulling.result()
            running.popleft()
            if chunk is None:
                pulls.close()
                continue
            # The next records may be deleted meanwhile.
            running.append((pulls, shared.begin(pulls.chunk())))
            yield pulls.queue.broker_name, chunk
    finally:
        for pulls, pulling in running:
            pulling.cancel()
            pulls.close()


def _columns(chunk: Chunk, task: LiveTask, columns: Sequence[str]) -> Any:
    """Return columns of the selected records as a batch."""
    made = to_arrow(located(chunk.data, chunk.at), columns, times=TIMES)
    if task.tags is not None:
        made = made.filter(pc.is_in(made.column("tags"), pa.array(task.tags, pa.string())))
    if task.keys is not None:
        made = made.filter(_has_key(made, pa.array(task.keys, pa.string())))
    return made


def _needed(task: LiveTask, schema: Any) -> list[str]:
    """Return the columns of a schema, and those by which a task selects messages."""
    names = {*stored_columns(schema.names)}
    if task.decompress:
        names = with_bodies(names)
    if task.tags is not None:
        names.add("tags")
    if task.keys is not None:
        names |= {"keys", "uniqKey"}
    return sorted(names)


def _has_key(made: Any, wanted: Any) -> Any:
    """Return which records have one of these among their keys, or as their unique key."""
    keys = made.column("keys")
    hits = pc.is_in(pc.list_flatten(keys), wanted).to_numpy(zero_copy_only=False)
    rows = pc.list_parent_indices(keys).to_numpy()[hits]
    found = pc.is_in(made.column("uniqKey"), wanted).to_numpy(zero_copy_only=False).copy()
    found[rows] = True
    return pa.array(found)
