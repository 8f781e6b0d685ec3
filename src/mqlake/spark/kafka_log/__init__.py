"""The Spark data source "kafka-log": Kafka's log directories as DataFrames and streams."""
