"""Read-only copies of a running master's store (docs/replica.md)."""
