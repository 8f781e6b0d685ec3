"""Find the queues that a consumer owns.

Upstream: `RebalanceImpl`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from mqlake.client.consumer.queues.assignment import AssignmentUnsupportedError, assignments_of
from mqlake.client.consumer.settings import ConsumerSettings
from mqlake.client.errors import NoRouteError
from mqlake.client.instance import ClientInstance
from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.heartbeat import ConsumerIds
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.pop import POP
from mqlake.protocol.body import decode_answer
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.clients import ConsumerGroupHeader

_TIMEOUT = 5.0

_log = logging.getLogger(__name__)


class Share:
    """A consumer's share of a topic.

    Attributes:
        queues: the queues that it pulls.
        popped: the queues that it pops.
        has_others: whether there are other consumers in the group.
        is_assigned: whether a broker assigned the queues.
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
    topic: str, instance: ClientInstance, group: str, settings: ConsumerSettings
) -> Share | None:
    """Return a consumer's share of a topic; None if it cannot be determined now."""
    if settings.strategy_of_brokers is None:
        return await _computed_share(topic, instance, group, settings)
    try:
        return await _assigned_share(topic, instance, group, settings.strategy_of_brokers)
    except AssignmentUnsupportedError:
        return await _computed_share(topic, instance, group, settings)
    except MqlakeError as error:
        _log.debug("topic %s: no broker assigns its queues: %s", topic, error)
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
    topic: str, instance: ClientInstance, group: str, settings: ConsumerSettings
) -> Share | None:
    """Return the share that this member computes; the shares of all members fit together.

    All members sort queues and members in the same order, that of Java's strings.
    """
    client_id, routes = instance.client_id, instance.routes
    try:
        queues = (await routes.of(topic)).read_queues
        members = [] if settings.broadcasting else await _members(topic, instance, group)
    except MqlakeError as error:
        _log.debug("topic %s: the owners of its queues are unknown now: %s", topic, error)
        return None
    if settings.broadcasting:
        return Share(queues, has_others=False)
    if not queues or not members:
        return None
    ordered = sorted(set(queues), key=_queue_order)
    ids = sorted(members, key=_java_order)
    return Share(settings.strategy(client_id, ordered, ids), has_others=len(ids) > 1)


async def _members(topic: str, instance: ClientInstance, group: str) -> list[str]:
    """Return the client ids of a group, according to a broker of the topic.

    Raises:
        MqlakeError: no broker of the topic answers.
    """
    route = await instance.routes.of(topic)
    code, header = RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupHeader(consumer_group=group)
    failure: MqlakeError = NoRouteError(f"topic {topic}: its route contains no broker")
    for addresses in route.addresses.values():
        for address in addresses.values():
            try:
                answer = await instance.cluster.ask(address, code, header, b"", _TIMEOUT)
                return decode_answer(ConsumerIds, answer.body).consumer_id_list
            except MqlakeError as error:
                failure = error
    raise failure


def _queue_order(queue: MessageQueue) -> tuple[bytes, bytes, int]:
    return _java_order(queue.topic), _java_order(queue.broker_name), queue.queue_id


def _java_order(text: str) -> bytes:
    """Return a key that compares like Java's strings: by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")
