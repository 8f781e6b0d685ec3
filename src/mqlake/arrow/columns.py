"""Runs of records as columns."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pyarrow as pa

from mqlake.arrow.record_run import RecordRun
from mqlake.client.received import MAX_BODIES, expand_body
from mqlake.dispatch.adjacent import AT, SIZE, find_records
from mqlake.dispatch.arrow import SCHEMA
from mqlake.dispatch.messages import to_arrow
from mqlake.formats import record
from mqlake.formats.properties import KEYS, TAGS, UNIQ_KEY
from mqlake.formats.sys_flag import COMPRESSED
from mqlake.protocol.messages.body_compression import MAX_BODY


class TooLongError(Exception):
    """The runs exceed the maximum size of a batch together."""


def to_columns(runs: Sequence[RecordRun]) -> tuple[Any, dict[int, str]]:
    """Return the records of runs as a `pyarrow.RecordBatch`, and why some bodies are damaged.

    The columns are those of `mqlake.dispatch.arrow.SCHEMA`. As with other consumers, `topic` is the
    one that was subscribed to, and `body` is decompressed; `size`, `bodyCrc` and `sysFlag` are the
    stored ones.

    Args:
        runs: at least one, all of one queue.

    Returns:
        The faults are keyed by row.

    Raises:
        TooLongError: several runs exceed MAX_BODIES bytes, now or after decompression. Bodies of a
            single run that do not fit are left as they are, with a fault.
    """
    if len(runs) > 1 and sum(len(run.body) for run in runs) > MAX_BODIES:
        raise TooLongError
    starts = list(accumulate((len(run.body) for run in runs), initial=0))
    data = runs[0].body if len(runs) == 1 else b"".join(run.body for run in runs)
    at = np.concatenate([run.at + start for start, run in zip(starts, runs, strict=False)])
    sizes = np.concatenate([run.sizes for run in runs])
    records = to_arrow(np.frombuffer(data, np.uint8), at, sizes)
    faults: dict[int, str] = {}
    rows = accumulate((len(run.at) for run in runs), initial=0)
    for row, run in zip(rows, runs, strict=False):
        faults |= {row + number: reason for number, reason in run.faults.items()}
    records = _with_topics(records, runs)
    return _decompressed(records, faults, is_last_try=len(runs) == 1), faults


def warm_up() -> None:
    """Load the kernels, or compile them if they are not in the cache."""
    properties = {UNIQ_KEY: "u", KEYS: "k", TAGS: "t"}
    data = record.encode(topic="T", body=b"warm up", properties=properties)
    rows, _ = find_records(data)
    to_arrow(np.frombuffer(data, np.uint8), rows[AT], rows[SIZE])


def _with_topics(records: Any, runs: Sequence[RecordRun]) -> Any:
    first = runs[0]
    if first.topics:
        topics = pa.array(chain.from_iterable(run.topics for run in runs), pa.string())
    elif first.topic != first.queue.topic:
        topics = pa.repeat(pa.scalar(first.topic, pa.string()), len(records))
    else:
        return records
    return _replaced(records, "topic", topics)


def _decompressed(records: Any, faults: dict[int, str], *, is_last_try: bool) -> Any:
    """Return records with decompressed bodies; note why a body cannot be decompressed.

    Raises:
        TooLongError: the records exceed MAX_BODIES bytes then, and this is not the last try.
    """
    left = MAX_BODIES
    flags = records.column(SCHEMA.get_field_index("sysFlag")).to_numpy()
    rows = np.flatnonzero(flags & COMPRESSED).tolist()
    if not rows:
        return records
    bodies = records.column(SCHEMA.get_field_index("body")).to_pylist()
    for row in rows:
        bodies[row], fault = expand_body(bodies[row], int(flags[row]), min(left, MAX_BODY))
        left -= len(bodies[row])
        if not is_last_try and left < MAX_BODY:
            raise TooLongError
        if fault:
            faults[row] = fault
    return _replaced(records, "body", pa.array(bodies, pa.binary()))


def _replaced(records: Any, name: str, column: Any) -> Any:
    number = SCHEMA.get_field_index(name)
    columns = [*records.columns[:number], column, *records.columns[number + 1 :]]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
