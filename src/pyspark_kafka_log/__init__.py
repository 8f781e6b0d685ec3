"""Let Spark find the format "kafka-log": it looks for `DefaultSource` in modules `pyspark_*`."""

from mqlake.spark.kafka_log.data_source import KafkaLogDataSource as DefaultSource

__all__ = ["DefaultSource"]
