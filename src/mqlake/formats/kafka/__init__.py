"""Kafka's log files: bytes to values and back, one module a format (docs/formats/kafka/)."""
