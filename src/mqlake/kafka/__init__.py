"""Kafka's log directories: segments of batches with their indexes, read or owned."""
