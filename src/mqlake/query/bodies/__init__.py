"""Decoders of message bodies, without an engine (docs/typed-bodies.md)."""
