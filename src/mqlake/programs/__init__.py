"""Programs that serve until they are stopped: composed parts, signals, log lines."""
