"""Put messages into the log: what is taken, what it becomes, what is answered."""
