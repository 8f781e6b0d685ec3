"""Programs that serve until they are told to stop: composed parts, signals, log lines."""
