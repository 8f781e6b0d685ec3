"""Bring a store into a good state when it is opened, and say how far it is."""
