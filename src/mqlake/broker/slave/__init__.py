"""What only slaves do: copy the master's tables, and refuse requests that need a master."""
