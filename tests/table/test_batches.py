"""How far tasks are read before their batches are requested."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mqlake.table.batches import MOST_AHEAD, read_tasks

SCHEMA = pa.schema([("n", pa.int64())])
ROWS = MOST_AHEAD // 8 // 4
"""Of a batch: four of them are as much as is read ahead."""
BATCHES, TASKS = 12, 3


def test_a_task_of_many_bytes_is_read_only_as_far_as_it_is_requested() -> None:
    made = 0

    def reader(task: int, _schema: Any) -> Iterator[pa.RecordBatch]:
        nonlocal made
        for number in range(BATCHES):
            made += 1
            yield pa.record_batch([pa.repeat(task * BATCHES + number, ROWS)], schema=SCHEMA)

    seen: list[int] = []
    for batch in read_tasks(range(TASKS), SCHEMA, None, 1, reader):
        seen.append(batch.column(0)[0].as_py())
        assert made <= len(seen) + 2 * 4, "two tasks are read ahead, each up to the limit"
    assert seen == list(range(BATCHES * TASKS))


def test_filters_hold_for_the_rest_of_a_task_too() -> None:
    def reader(_task: int, _schema: Any) -> Iterator[pa.RecordBatch]:
        for number in range(BATCHES):
            yield pa.record_batch([pa.repeat(number, ROWS)], schema=SCHEMA)

    keep = pc.field("n") >= 3
    found = read_tasks([0], SCHEMA, keep, 1, reader)
    assert [batch.column(0)[0].as_py() for batch in found] == list(range(3, BATCHES))
