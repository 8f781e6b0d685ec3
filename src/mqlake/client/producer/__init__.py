"""Producers: they send messages."""
