"""Which stretches of the log a query has to read."""
