"""The data source "kafka-log" (docs/kafka-log-source.md)."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from mqlake.query.kafka_log.options import read_options
from mqlake.query.reading.log import tell_ignored
from mqlake.spark.kafka_log.schema import check_schema, spark_schema
from mqlake.spark.options.tables import keeps_options_in_tables
from mqlake.spark.reading.one_line import raises_lines
from mqlake.spark.reading.readers import StreamReader, batch_reader

_OTHERWISE = "options such as subscribe, startingOffsets and startingTimestamp limit what is read"


@raises_lines("schema", "reader", "streamReader")
@keeps_options_in_tables
class KafkaLogDataSource(DataSource):
    """Records of a Kafka log directory as rows."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "kafka-log"

    def schema(self) -> StructType:
        """Return the columns that options ask for; raises FormatError for wrong options."""
        return spark_schema(read_options(self.options).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query."""
        from mqlake.query.kafka_log.batch import KNOWN, KafkaQuery

        check_schema(schema)
        options = read_options(self.options, streaming=False)
        tell_ignored(options.ignored)
        return batch_reader(KafkaQuery(options), schema, options.push_filters, _OTHERWISE, KNOWN)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of a streaming query."""
        from mqlake.query.kafka_log.stream import KafkaStream

        check_schema(schema)
        options = read_options(self.options, streaming=True)
        tell_ignored(options.ignored)
        return StreamReader(KafkaStream(options), schema)
