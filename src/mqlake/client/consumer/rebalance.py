"""Which queues are a consumer's own (upstream: `RebalanceImpl`)."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from mqlake.client.consumer.assignment import AssignmentUnsupportedError, assignments_of
from mqlake.client.consumer.broker_calls import BrokerCalls
from mqlake.client.consumer.settings import ConsumerSettings
from mqlake.client.instance import ClientInstance
from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.pop import POP

_log = logging.getLogger(__name__)


class Share:
    """A consumer's share of a topic.

    Attributes:
        queues: its own, which it pulls.
        popped: those that it pops.
        has_others: whether there are other consumers in the group.
        is_assigned: whether a broker said so.
    """

    def __init__(
        self,
        queues: Iterable[MessageQueue],
        *,
        has_others: bool,
        popped: Iterable[MessageQueue] = (),
        is_assigned: bool = False,
    ) -> None:
        self.queues, self.popped = frozenset(queues), frozenset(popped)
        self.has_others, self.is_assigned = has_others, is_assigned


async def share_of(
    topic: str, instance: ClientInstance, calls: BrokerCalls, settings: ConsumerSettings
) -> Share | None:
    """Return a consumer's share of a topic; None where it is not known, and stays what it was."""
    if settings.strategy_of_brokers is None:
        return await _computed_share(topic, instance, calls, settings)
    try:
        return await _assigned_share(topic, instance, calls.group, settings.strategy_of_brokers)
    except AssignmentUnsupportedError:
        return await _computed_share(topic, instance, calls, settings)
    except MqlakeError as error:
        _log.debug("topic %s: no broker says whose its queues are: %s", topic, error)
        return None


async def _assigned_share(
    topic: str, instance: ClientInstance, group: str, strategy: str
) -> Share | None:
    found = await assignments_of(instance, topic, group, strategy)
    if found is None:
        return None
    popped = {each.message_queue for each in found if each.mode == POP}
    pulled = {each.message_queue for each in found} - popped
    return Share(pulled, has_others=True, popped=popped, is_assigned=True)


async def _computed_share(
    topic: str, instance: ClientInstance, calls: BrokerCalls, settings: ConsumerSettings
) -> Share | None:
    """Return what all members of a group come to.

    They put queues and members in the same order: that of Java's strings.
    """
    client_id, routes = instance.client_id, instance.routes
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
