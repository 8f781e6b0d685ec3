"""Connections, and what is received over them."""

from __future__ import annotations

import time
from typing import Any

import pytest
from kombu import Consumer, Producer

PATIENCE = 60.0


class Received:
    """The messages that a consumer got."""

    def __init__(self, connection: Any, *, keep: bool = False) -> None:
        self.connection, self._keep = connection, keep
        self.bodies: list[Any] = []
        self.messages: list[Any] = []

    def __call__(self, body: Any, message: Any) -> None:
        self.bodies.append(body)
        self.messages.append(message)
        if not self._keep:
            message.ack()

    def wait(self, count: int) -> None:
        """Wait until so many messages have arrived."""
        deadline = time.monotonic() + PATIENCE
        while len(self.bodies) < count:
            self.connection.drain_events(timeout=max(0.0, deadline - time.monotonic()))

    def nothing_more(self, seconds: float) -> None:
        """Require that nothing arrives for a while."""
        with pytest.raises(TimeoutError):
            self.connection.drain_events(timeout=seconds)


def consume(connection: Any, queue: Any, received: Received, **options: Any) -> Any:
    """Return a consumer of a queue, to be entered with `with`."""
    return Consumer(connection.channel(), [queue], callbacks=[received], **options)


def publish(connection: Any, queue: str, *bodies: object, **options: Any) -> None:
    """Publish messages on a channel of their own."""
    with connection.channel() as channel:
        for body in bodies:
            Producer(channel).publish(body, routing_key=queue, **options)
