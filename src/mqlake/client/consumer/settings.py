"""How a consumer behaves (upstream: `DefaultMQPushConsumer`)."""

from __future__ import annotations

from typing import Literal

import msgspec

from mqlake.client.errors import ClientError
from mqlake.protocol.strategies import STRATEGIES, Strategy, averagely

ConsumeFrom = Literal["last", "first"] | int
"""Where a group begins in a queue of which it has no offset: behind its last message, at its first
one, or at a time in milliseconds since 1970."""

FOREVER = 2**31 - 1
_DEFAULT_RETRIES = 16


class ConsumerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a consumer reads, and what it does with what is not finished.

    Attributes:
        in_order: each queue is handed over in its order, one batch at a time.
        broadcasting: each consumer of the group gets every message, and keeps its own offsets.
        consume_from: where the group begins.
        strategy: how consumers of the group share the queues; the same for all of them.
        client_rebalance: whether the members work out themselves who reads which queue. If not, the
            brokers of RocketMQ 5 say so, and also whether a queue is popped (`mqadmin
            setConsumeMode`); the same for all members. In order and broadcasting, and with older
            brokers, it stays with the members.
        pop_invisible: seconds that a popped message is this consumer's.
        max_retries: how often a message comes again before it is dead; -1 for 16, or, in order,
            for ever.
        pull_size, pull_bytes: messages and bytes of one pull at most.
        queue_messages, queue_bytes, queue_span: a queue is not read on while so many messages or
            bytes of it are not finished, or the offsets of those are so far apart.
        suspend: seconds after which a message that was not finished in order comes again.
        handover: seconds between the moment in which a queue becomes this consumer's and that in
            which it is read, while others are in the group: time for the last one to commit.
        rebalance_interval, commit_interval: seconds.
        handling_timeout: seconds for which a message may be out before it comes again through the
            retry topic, so that it does not hold up the group's offset; not in order.
        trace: whether each message is noted in RocketMQ's trace topic, or the topic for that.
        close_timeout: seconds that handlers have to end when the consumer is closed.
    """

    in_order: bool = False
    broadcasting: bool = False
    consume_from: ConsumeFrom = "last"
    strategy: Strategy = averagely
    client_rebalance: bool = True
    pop_invisible: float = 60.0
    max_retries: int = -1
    pull_size: int = 32
    pull_bytes: int = 256 * 1024
    queue_messages: int = 1000
    queue_bytes: int = 100 * 1024 * 1024
    queue_span: int = 2000
    suspend: float = 1.0
    handover: float = 0.5
    rebalance_interval: float = 20.0
    commit_interval: float = 5.0
    handling_timeout: float = 15 * 60.0
    close_timeout: float = 10.0
    trace: bool | str = False

    @property
    def takes_locks(self) -> bool:
        """Whether queues are locked at their brokers, so that no other member reads them."""
        return self.in_order and not self.broadcasting

    @property
    def strategy_of_brokers(self) -> str | None:
        """Return the strategy by which brokers assign queues; None if members share them out.

        Raises:
            ClientError: brokers do not know the strategy.
        """
        if self.client_rebalance or self.in_order or self.broadcasting:
            return None
        for name, strategy in STRATEGIES.items():
            if strategy is self.strategy:
                return name
        raise ClientError("brokers assign queues only averagely, or by circle")

    @property
    def retries(self) -> int:
        """Return how often a message comes again before it is dead."""
        if self.max_retries >= 0:
            return self.max_retries
        return FOREVER if self.in_order else _DEFAULT_RETRIES
