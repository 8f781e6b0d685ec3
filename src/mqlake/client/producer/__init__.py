"""Producers: what sends messages."""
