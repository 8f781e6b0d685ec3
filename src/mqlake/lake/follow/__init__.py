"""From a log into a table: micro-batches, damage, dead letters, and checks of the result."""
