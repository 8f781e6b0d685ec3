"""Queries over one store directory (docs/spark-source.md)."""
