"""Notify those who wait for messages that some have arrived.

Upstream: `MessageArrivingListener`.
"""

from __future__ import annotations

from typing import Protocol
from weakref import WeakSet


class Listener(Protocol):
    """A listener that waits for messages of a topic."""

    def arrived(self, queue_id: int, max_offset: int) -> None:
        """Note that a queue has new messages before `max_offset`; called by the dispatcher."""
        ...

    def closed(self) -> None:
        """Note that no more messages will arrive, because the store is being closed."""
        ...


class Arrivals:
    """The listeners of a store, by topic. Each is dropped when nobody else holds it."""

    def __init__(self) -> None:
        self._listeners: dict[str, WeakSet[Listener]] = {}

    def __call__(self, topic: str, queue_id: int, max_offset: int) -> None:
        """Notify the listeners of a topic."""
        listeners = self._listeners.get(topic)
        if listeners is None:
            return
        for listener in list(listeners):
            listener.arrived(queue_id, max_offset)
        if not listeners:
            del self._listeners[topic]

    def listen(self, topic: str, listener: Listener) -> None:
        """Notify a listener of messages that arrive in a topic from now on."""
        self._listeners.setdefault(topic, WeakSet()).add(listener)

    def close(self) -> None:
        """Notify all listeners that no more messages will arrive."""
        for listeners in list(self._listeners.values()):
            for listener in list(listeners):
                listener.closed()
        self._listeners.clear()
