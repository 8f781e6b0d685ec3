"""Which queues are a consumer's own (upstream: `RebalanceImpl`)."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from mqlake.client.consumer.broker_calls import BrokerCalls
from mqlake.client.consumer.settings import ConsumerSettings
from mqlake.client.routes import Routes
from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.message_queue import MessageQueue

_log = logging.getLogger(__name__)


class Share:
    """A consumer's share of a topic.

    Attributes:
        queues: its own.
        has_others: whether there are other consumers in the group.
    """

    def __init__(self, queues: Iterable[MessageQueue], *, has_others: bool) -> None:
        self.queues, self.has_others = frozenset(queues), has_others


async def share_of(
    topic: str, client_id: str, routes: Routes, calls: BrokerCalls, settings: ConsumerSettings
) -> Share | None:
    """Return a consumer's share of a topic; None where it is not known, and stays what it was.

    All members of a group come to the same result, since they put queues and members in the same
    order: that of Java's strings.
    """
    try:
        queues = (await routes.of(topic)).read_queues
        members = [] if settings.broadcasting else await calls.members(topic)
    except MqlakeError as error:
        _log.debug("topic %s: who reads which queue is not known now: %s", topic, error)
        return None
    if settings.broadcasting:
        return Share(queues, has_others=False)
    if not queues or not members:
        return None
    ordered = sorted(set(queues), key=_queue_order)
    ids = sorted(members, key=_java_order)
    return Share(settings.strategy(client_id, ordered, ids), has_others=len(ids) > 1)


def _queue_order(queue: MessageQueue) -> tuple[bytes, bytes, int]:
    return _java_order(queue.topic), _java_order(queue.broker_name), queue.queue_id


def _java_order(text: str) -> bytes:
    """Return what compares as Java compares strings: by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")
