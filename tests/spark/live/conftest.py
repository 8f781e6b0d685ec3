"""Brokers for the tests of the adapter to live sources."""

from __future__ import annotations

from tests.query.live.conftest import _connections, _patience, running

__all__ = ["_connections", "_patience", "running"]
