"""Messages that a consumer sends to its retry topic: for a retry, or to the dead-letter topic.

Upstream: `SendMessageProcessor.handleRetryAndDLQ`. Consumers send such messages if they consume in
order, or if their CONSUMER_SEND_MSG_BACK failed.
"""

from __future__ import annotations

from mqlake.broker.send.checks import Header
from mqlake.broker.state.broker_state import BrokerState
from mqlake.protocol import naming
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.remoting.connection import Peer
from mqlake.store.append.put_result import PutResult, PutStatus

_POP_SEPARATOR = "+"


class DeadLetters:
    """Decides which messages of retry topics are dead letters."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def topic(self, header: Header, peer: Peer) -> str:
        """Return the topic for a message of a client to a retry topic.

        Raises:
            RemotingError: the group does not exist.
        """
        name = _group(header.topic)
        group = self._state.groups.get_or_make(name, peer.address)
        if group is None:
            reason = f"subscription group not exist, {name}"
            raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, reason)
        most = header.max_reconsume_times
        is_alive = (header.reconsume_times or 0) <= (
            group.retry_max_times if most is None else most
        )
        # A consumer in order has already tried often enough, and keeps its queue meanwhile.
        if is_alive and not self._state.locks.are_held(name):
            return header.topic
        dead = naming.dlq_topic(name)
        self._state.topics.make(dead, naming.DLQ_QUEUES)
        return dead

    def count(self, retry_topic: str, put: PutResult) -> None:
        """Count a dead letter if it was put.

        Args:
            retry_topic: the topic to which the client sent it.
        """
        if put.count and put.status is not PutStatus.UNKNOWN_ERROR:
            self._state.stats.dead_letter(_group(retry_topic), retry_topic)


def _group(topic: str) -> str:
    name = topic.removeprefix(naming.RETRY_PREFIX)
    group, separator, of_topic = name.partition(_POP_SEPARATOR)
    return group if separator and of_topic else name
