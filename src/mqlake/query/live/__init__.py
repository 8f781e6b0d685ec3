"""Queries over the brokers of a running cluster (docs/spark-live.md)."""
