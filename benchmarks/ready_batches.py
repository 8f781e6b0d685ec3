"""A Python data source whose Arrow batches are ready: what Spark takes, whatever makes them."""

# pyright: basic
# Reason: pyarrow and PySpark's pickling carry no types.

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def ready(
    spark: SparkSession, source: DataSource, file: Path, rows: int, partitions: int
) -> Callable[[], DataFrame]:
    """Return what makes a DataFrame of that many rows: the first batch of `source`, repeated.

    The batch is written to `file`, and read from it in the tasks. Spark plans a query of a Python
    data source in a process, and keeps the plan for all queries of the same DataFrame: so only the
    first query of each DataFrame takes what Spark takes.
    """
    schema = source.schema()
    assert isinstance(schema, StructType)
    reader = source.reader(schema)
    batch = next(iter(reader.read(reader.partitions()[0])))
    with pa.ipc.new_file(str(file), batch.schema) as writer:
        writer.write_batch(batch)
    # Spark's workers cannot import what is run from a checkout.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    spark.dataSource.register(ReadyBatches)
    options = {"file": str(file), "schema": schema.json(), "rows": rows // partitions}
    return spark.read.format("ready").options(**options, partitions=partitions).load


class ReadyBatches(DataSource):
    """Yields one batch until there are enough rows."""

    @classmethod
    def name(cls) -> str:
        """Return what `format` takes."""
        return "ready"

    def schema(self) -> StructType:
        """Return the columns of the batch."""
        return StructType.fromJson(json.loads(self.options["schema"]))

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 (Spark's interface)
        """Return what reads the batch."""
        return _Reader(self.options)


class _Reader(DataSourceReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._file, self._rows = options["file"], int(options["rows"])
        self._partitions = int(options["partitions"])

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[Any]:  # noqa: ARG002 (as above)
        with pa.ipc.open_file(self._file) as file:
            batch = file.get_batch(0)
        left = self._rows
        while left > 0:
            yield batch.slice(0, min(left, batch.num_rows))
            left -= batch.num_rows
