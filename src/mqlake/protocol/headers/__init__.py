"""Typed request and response headers, a family of requests a file."""
