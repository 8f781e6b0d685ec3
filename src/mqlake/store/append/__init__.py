"""Put messages into the log: checks, records, results."""
