"""What is derived from records: entries of queues and of the index, and hashes of keys."""
