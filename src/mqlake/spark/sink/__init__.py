"""The sink "rocketmq": rows of Spark as messages of a store directory (docs/spark-sink.md)."""
