"""Derive consume queues and index from the log as it grows."""
