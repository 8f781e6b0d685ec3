"""Segments, partitions and log directories that this process writes."""
