"""Decide which messages of an exchange are for a queue."""

from __future__ import annotations

from collections.abc import Callable

from mqlake.kombu.border import BoundQueue, ExchangeType, Payload
from mqlake.kombu.payloads import exchange_of, routing_key_of


def matcher(
    kind: ExchangeType, table: list[BoundQueue], exchange: str, queue: str
) -> Callable[[Payload], bool]:
    """Return a function that decides whether a message of an exchange is for a queue.

    Args:
        table: the exchange's bindings, of all queues.
    """
    bound = [row for row in table if row[2] == queue]

    def is_for_queue(payload: Payload) -> bool:
        key = routing_key_of(payload)
        if not exchange_of(
            payload
        ):  # The message was sent to the queue itself, which reads nothing else.
            return key == queue
        return bool(kind.lookup(bound, exchange, key, None))

    return is_for_queue
