"""The data source "rocketmq": store directories (docs/spark-source.md, docs/spark-sink.md).

It also reads and writes running clusters (docs/spark-live.md).
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from mqlake.errors import FormatError
from mqlake.spark.live.options import is_live, live_options
from mqlake.spark.options.tables import keeps_options_in_tables
from mqlake.spark.reading.log import tell_ignored
from mqlake.spark.source.columns import spark_schema
from mqlake.spark.source.options import ReadOptions, is_union, read_options
from mqlake.spark.stores.places import are_many, with_one_path


@keeps_options_in_tables
class RocketMQDataSource(DataSource):
    """Messages of RocketMQ store directories, or of running clusters, as rows."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "rocketmq"

    def schema(self) -> StructType:
        """Return the columns that options ask for; raises FormatError for wrong options."""
        if is_union(self.options):
            from mqlake.spark.union.batch import union_schema

            return union_schema(_of_union(self.options))
        read = live_options if is_live(self.options) else _shared_options
        return spark_schema(read(self.options).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query."""
        if is_live(self.options):
            from mqlake.spark.live import batch as live

            asked = live_options(self.options, streaming=False)
            tell_ignored(asked.ignored)
            return live.reader(asked, schema)
        options = _shared_options(self.options, streaming=False)
        tell_ignored(options.ignored)
        if options.table is not None:
            from mqlake.spark.union import batch as union

            return union.reader(options, schema)
        if are_many(self.options):
            from mqlake.spark.stores import batch as several
            from mqlake.spark.stores.stores import find_stores

            return several.reader(find_stores(self.options, streaming=False), options, schema)
        from mqlake.spark.source import batch

        return batch.reader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of a streaming query."""
        if is_live(self.options):
            from mqlake.spark.live.stream import LiveStreamReader

            asked = live_options(self.options, streaming=True)
            tell_ignored(asked.ignored)
            return LiveStreamReader(asked, schema)
        options = _shared_options(self.options, streaming=True)
        tell_ignored(options.ignored)
        if are_many(self.options):
            from mqlake.spark.stores.stream import StoresStreamReader

            return StoresStreamReader(self.options, options, schema)
        from mqlake.spark.source.stream import StreamReader

        return StreamReader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch query."""
        if is_live(self.options):
            from mqlake.spark.live.sink_options import live_write_options
            from mqlake.spark.live.writer import LiveBatchWriter

            return LiveBatchWriter(live_write_options(self.options), schema, overwrite=overwrite)
        from mqlake.spark.sink.options import write_options
        from mqlake.spark.sink.writer import BatchWriter

        return BatchWriter(write_options(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Return the writer of a streaming query."""
        if is_live(self.options):
            from mqlake.spark.live.sink_options import live_write_options
            from mqlake.spark.live.writer import LiveStreamWriter

            return LiveStreamWriter(live_write_options(self.options), schema, overwrite=overwrite)
        from mqlake.spark.sink.options import write_options
        from mqlake.spark.sink.writer import StreamWriter

        return StreamWriter(write_options(self.options), schema, overwrite=overwrite)


def _of_union(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a query over a table and its log, with at most one path."""
    if are_many(given):
        raise FormatError(
            "option table: path names several stores: leave path out to read the log of each store "
            "that the table follows"
        )
    return with_one_path(given)


def _shared_options(given: Mapping[str, str], *, streaming: bool | None = None) -> ReadOptions:
    """Return the options that apply to each of the named stores."""
    if is_union(given):
        return read_options(_of_union(given), streaming=streaming)
    if not are_many(given):
        return read_options(with_one_path(given), streaming=streaming)
    from mqlake.spark.stores.stores import check_many, without_queues

    check_many(given)
    return read_options(without_queues(given), streaming=streaming)
