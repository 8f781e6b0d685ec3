"""Read-only SQL over a log and its lake table, in a process that is killed at its limits."""
