"""How a consumer behaves (upstream: `DefaultMQPushConsumer`)."""

from __future__ import annotations

from typing import Literal

import msgspec

from mqlake.client.errors import ClientError
from mqlake.protocol.strategies import STRATEGIES, Strategy, averagely

ConsumeFrom = Literal["last", "first"] | int
"""Where a group without a committed offset begins in a queue: after its last message, at its first
one, or at a time in milliseconds since 1970.
"""

FOREVER = 2**31 - 1
_DEFAULT_RETRIES = 16
_STARTS = {"earliest": "first", "latest": "last"}
"""What `mqlake consume` and Spark call the starts."""


class ConsumerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a consumer reads, and what it does with unfinished messages.

    Attributes:
        in_order: each queue is handed over in its order, one batch at a time.
        broadcasting: each consumer of the group gets every message, and keeps its own offsets.
        consume_from: where a new group begins.
        strategy: how consumers of the group share the queues; it must be the same for all of them.
        client_rebalance: whether the members compute themselves which of them reads which queue. If
            not, the brokers of RocketMQ 5 assign the queues, and also decide whether a queue is
            popped (`mqadmin setConsumeMode`). It must be the same for all members. For consumption
            in order, for broadcasting, and with older brokers, the members always compute it.
        pop_invisible: seconds for which a popped message is invisible to other consumers.
        max_retries: how often a message is redelivered before it becomes a dead letter; -1 for 16,
            or, in order, without limit.
        pull_size, pull_bytes: the maximum of messages and bytes in one pull.
        queue_messages, queue_bytes, queue_span: a queue is not read further while so many of its
            messages or bytes are unfinished, or their offsets are so far apart.
        suspend: seconds after which a message that was not finished in order is redelivered.
        handover: seconds between the assignment of a queue and its first read, if the group has
            other members: time for the previous owner to commit.
        rebalance_interval, commit_interval: seconds.
        handling_timeout: seconds for which a message may be handled before it is redelivered
            through the retry topic, so that it does not hold up the group's offset; not in order.
        trace: whether each message is recorded in RocketMQ's trace topic, or the topic for that.
        close_timeout: seconds within which handlers must end when the consumer is closed.

    Raises:
        ClientError: `consume_from` is none of its values.
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

    def __post_init__(self) -> None:
        start: object = self.consume_from
        if isinstance(start, int) or start in _STARTS.values():
            return
        meant = _STARTS.get(str(start))
        right = repr(meant) if meant else "'last', 'first' or milliseconds since 1970"
        raise ClientError(f"consume_from={start!r}: give {right}")

    @property
    def takes_locks(self) -> bool:
        """Return whether queues are locked at their brokers, so that no other member reads them."""
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
        raise ClientError(
            "brokers assign queues only by the strategies averagely and by circle: choose one, "
            "or set client_rebalance=True"
        )

    @property
    def retries(self) -> int:
        """Return how often a message is redelivered before it becomes a dead letter."""
        if self.max_retries >= 0:
            return self.max_retries
        return FOREVER if self.in_order else _DEFAULT_RETRIES
