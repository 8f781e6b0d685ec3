"""Write the rows of a DataFrame to files of a table, in Spark's tasks."""

# pyright: basic
# Reason: PySpark and pyarrow carry few types.

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from mqlake.lake.files.partition_writer import Shapes, WrittenFiles
from mqlake.spark.failure import Attempt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RESULT = "written binary"


def write_rows(
    rows: DataFrame, shape: Shapes, write: Callable[[Shapes, Iterator[Any]], WrittenFiles]
) -> list[WrittenFiles]:
    """Write rows in Spark's tasks; return what each wrote.

    Args:
        write: writes the rows of one task, as Arrow batches.
    """
    attempt: Attempt[Any, WrittenFiles] = Attempt(partial(write, shape))

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        yield _encode(attempt(batches))

    frame: Any = rows
    made = frame.mapInArrow(run, _RESULT).collect()
    return [msgspec.json.decode(row.written, type=WrittenFiles) for row in made]


def _encode(written: WrittenFiles) -> Any:
    encoded = pa.array([msgspec.json.encode(written)], pa.binary())
    return pa.RecordBatch.from_arrays([encoded], names=["written"])
