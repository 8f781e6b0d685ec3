"""The data source "rocketmq": store directories (docs/spark-source.md, docs/spark-sink.md).

It also reads and writes running clusters (docs/spark-live.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from mqlake.errors import FormatError
from mqlake.query.live.place import is_live
from mqlake.query.reading.log import tell_ignored
from mqlake.query.reading.source import BatchQuery
from mqlake.query.store.options import StoreReadOptions, is_union, read_options
from mqlake.query.stores.places import are_many, with_one_path
from mqlake.spark.options.tables import keeps_options_in_tables
from mqlake.spark.reading.one_line import raises_lines
from mqlake.spark.reading.readers import StreamReader, batch_reader
from mqlake.spark.source.schema import columns_of, spark_schema

_OTHERWISE = "options such as subscribe, keys, tags and startingTimestamp limit what is read"
_LIVE_OTHERWISE = "options such as subscribe, tags and startingTimestamp limit what is read"


@raises_lines("schema", "reader", "streamReader", "writer", "streamWriter")
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
            from mqlake.spark.source.union_schema import union_schema

            return union_schema(_of_union(self.options))
        if is_live(self.options):
            from mqlake.query.live.options import live_options

            return spark_schema(live_options(self.options).columns)
        return spark_schema(_shared_options(self.options).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query."""
        columns_of(schema)
        if is_live(self.options):
            from mqlake.query.live.batch import LiveQuery
            from mqlake.query.live.options import live_options

            asked = live_options(self.options, streaming=False)
            tell_ignored(asked.ignored)
            query = LiveQuery(asked)
            return batch_reader(query, schema, asked.push_filters, _LIVE_OTHERWISE)
        options = _shared_options(self.options, streaming=False)
        tell_ignored(options.ignored)
        query = self._query(options, schema)
        return batch_reader(query, schema, options.push_filters, _OTHERWISE)

    def _query(self, options: StoreReadOptions, schema: StructType) -> BatchQuery[Any]:
        """Return the batch query over store directories."""
        if options.table is not None:
            from mqlake.lake.union.batch import UnionQuery

            return UnionQuery(options, schema.names)
        if are_many(self.options):
            from mqlake.query.stores.batch import StoresQuery
            from mqlake.query.stores.stores import find_stores

            return StoresQuery(find_stores(self.options, streaming=False))
        from mqlake.query.store.batch import LogQuery

        return LogQuery(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of a streaming query."""
        columns_of(schema)
        if is_live(self.options):
            from mqlake.query.live.options import live_options
            from mqlake.query.live.stream import LiveStream

            asked = live_options(self.options, streaming=True)
            tell_ignored(asked.ignored)
            return StreamReader(LiveStream(asked), schema)
        options = _shared_options(self.options, streaming=True)
        tell_ignored(options.ignored)
        if are_many(self.options):
            from mqlake.query.stores.stream import StoresStream

            return StreamReader(StoresStream(self.options, options), schema)
        from mqlake.query.store.stream import LogStream

        return StreamReader(LogStream(options), schema)

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


def _shared_options(given: Mapping[str, str], *, streaming: bool | None = None) -> StoreReadOptions:
    """Return the options that apply to each of the named stores."""
    if is_union(given):
        return read_options(_of_union(given), streaming=streaming)
    if not are_many(given):
        return read_options(with_one_path(given), streaming=streaming)
    from mqlake.query.stores.stores import check_many, without_queues

    check_many(given)
    return read_options(without_queues(given), streaming=streaming)
