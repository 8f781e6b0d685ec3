"""One queue of one broker (upstream: `MessageQueue`)."""

from __future__ import annotations

import msgspec


class MessageQueue(msgspec.Struct, rename="camel", frozen=True):
    """A queue: its topic, the broker it is on, its id there."""

    topic: str = ""
    broker_name: str = ""
    queue_id: int = 0
