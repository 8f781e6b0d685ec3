"""A name server: which brokers there are, and where topics are (docs/name-server.md)."""
