"""Let Spark find the format "rocketmq": it looks for `DefaultSource` in modules `pyspark_*`."""

from mqlake.spark.data_source import RocketMQDataSource as DefaultSource

__all__ = ["DefaultSource"]
