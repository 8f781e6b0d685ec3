"""Verify a store against its records."""
