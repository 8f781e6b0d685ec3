"""Read the messages of one task as Arrow batches."""

# pyright: basic, reportAttributeAccessIssue=false
# Reason: pyarrow carries no types, and makes its functions when it is imported.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mqlake.dispatch.messages import to_arrow
from mqlake.formats.properties import UNIQ_KEY
from mqlake.spark.live.brokers import Brokers
from mqlake.spark.live.connection import Connection, connection
from mqlake.spark.live.losses import Losses
from mqlake.spark.live.plan import Range, Task
from mqlake.spark.live.pulls import Chunk, Pulls
from mqlake.spark.reading.joining import put_together
from mqlake.spark.reading.memory import keep_freed_memory
from mqlake.spark.source.columns import fitted


def read(task: Task, schema: Any) -> Iterator[Any]:
    """Yield the messages of a task as `pyarrow.RecordBatch`es of an Arrow schema.

    Raises:
        ClientError: a broker does not answer.
        StoreError: messages are lost, and that is not tolerated.
    """
    keep_freed_memory()
    losses = Losses(fail=task.fail_on_data_loss)
    yield from put_together(
        made for one in task.ranges for made in _read_range(task, one, losses, schema)
    )
    losses.report()


def _read_range(task: Task, one: Range, losses: Losses, schema: Any) -> Iterator[Any]:
    shared = connection(task.name_servers)
    brokers = Brokers(shared.instance, task.retry_timeout / 1000)
    pulls = Pulls(brokers, task, one, losses)
    _check_mark(shared, brokers, one, losses, is_before=True)
    pulling = shared.begin(pulls.chunk())
    try:
        while (chunk := pulling.result()) is not None:
            pulling = shared.begin(pulls.chunk())  # meanwhile
            made = _columns(chunk, task, needs_key="uniqKey" in schema.names)
            if len(made):
                yield fitted(made, schema, one.queue.broker_name)
    finally:
        pulling.cancel()
    _check_mark(shared, brokers, one, losses, is_before=False)


def _check_mark(
    shared: Connection, brokers: Brokers, one: Range, losses: Losses, *, is_before: bool
) -> None:
    """Compare the record before the range's start, or its last one, with the one of the query.

    One that the broker does not have any more is no proof of anything.
    """
    expected, offset = (one.before, one.start - 1) if is_before else (one.last, one.end - 1)
    if expected is None:
        return
    found = shared.run(brokers.mark(one.queue, offset))
    if found is not None and found != expected:
        losses.another_queue(one.queue, offset)


def _columns(chunk: Chunk, task: Task, *, needs_key: bool) -> Any:
    """Return records as a batch with all columns but `brokerName`, and only what is wanted."""
    made = to_arrow(np.frombuffer(chunk.data, np.uint8), chunk.at, chunk.sizes)
    if needs_key or task.keys is not None:
        key = pc.map_lookup(made.column("properties"), UNIQ_KEY, "first")
        made = made.append_column("uniqKey", key)
    if task.tags is not None:
        made = made.filter(pc.is_in(made.column("tags"), pa.array(task.tags, pa.string())))
    if task.keys is not None:
        made = made.filter(_has_key(made, pa.array(task.keys, pa.string())))
    return made


def _has_key(made: Any, wanted: Any) -> Any:
    """Return which records have one of these among their keys, or as their unique key."""
    keys = made.column("keys")
    hits = pc.is_in(pc.list_flatten(keys), wanted).to_numpy(zero_copy_only=False)
    rows = pc.list_parent_indices(keys).to_numpy()[hits]
    found = pc.is_in(made.column("uniqKey"), wanted).to_numpy(zero_copy_only=False).copy()
    found[rows] = True
    return pa.array(found)
