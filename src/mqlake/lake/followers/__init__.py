"""Which stores a table follows, and by which checkpoints."""
