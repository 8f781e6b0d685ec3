"""Consumers: what reads messages, as one of a group."""
