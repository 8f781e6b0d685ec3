"""Read segments, partitions and log directories."""
