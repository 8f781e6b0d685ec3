"""Confluent's wire format of bodies whose schemas are in a registry."""

from __future__ import annotations

PREFIX = 5
"""Length of the prefix, in bytes: a zero byte, and a schema id of four."""
