"""Shares of the log for tasks, and where the log ends."""
