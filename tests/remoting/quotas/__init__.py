"""Limits of addresses and users."""
