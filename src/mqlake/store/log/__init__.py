"""The commit log of a store: its segments, its end; read, or owned and appended to."""
