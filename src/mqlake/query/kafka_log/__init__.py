"""Queries over Kafka log directories (docs/kafka-log-source.md)."""
