"""Light queues: derived from properties of records, many queues in one file."""
