"""Rebuild consume queues, index files and checkpoint."""
