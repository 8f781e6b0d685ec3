"""Messages that a consumer sends to its retry topic: for a retry, or to the dead-letter topic.

Upstream: `SendMessageProcessor.handleRetryAndDLQ`. Consumers send such messages if they consume in
order, or if their CONSUMER_SEND_MSG_BACK failed.
"""

from __future__ import annotations

from mqlake.broker.send.checks import Header, group_of_retry_topic, retry_group
from mqlake.broker.state.broker_state import BrokerState
from mqlake.protocol import naming
from mqlake.remoting.connection import Peer
from mqlake.store.append.put_result import PutResult, PutStatus


class DeadLetters:
    """Decides which messages of retry topics are dead letters."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def topic(self, header: Header, peer: Peer) -> str:
        """Return the topic for a message of a client to a retry topic.

        Raises:
            RemotingError: the group does not exist.
        """
        group = retry_group(self._state, header.topic, peer)
        name = group_of_retry_topic(header.topic)
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
            self._state.stats.dead_letter(group_of_retry_topic(retry_topic), retry_topic)
