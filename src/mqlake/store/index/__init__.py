"""The index files of a store, and queries by key; read, or owned and written."""
