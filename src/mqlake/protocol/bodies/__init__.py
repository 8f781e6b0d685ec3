"""Typed JSON bodies that several programs read or write, a subject a file."""
