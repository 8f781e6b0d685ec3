"""Queries over several store directories as one table."""
