"""Handles that brokers give out, and clients return: of popped and of delayed messages."""
