"""Receiving messages, and settling them."""
