"""Formats of light queues, which mqlake derives from the log."""
