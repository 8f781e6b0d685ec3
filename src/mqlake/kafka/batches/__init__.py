"""The batches of a log: the walk over them, compiled and in plain Python."""
