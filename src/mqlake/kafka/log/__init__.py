"""Segments, partitions and log directories that are read."""
