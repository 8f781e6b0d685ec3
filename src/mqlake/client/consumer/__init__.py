"""Consumers: they read messages as members of a group."""
