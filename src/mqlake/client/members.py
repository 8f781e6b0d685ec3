"""The producers and consumers of one client instance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from mqlake.client.errors import ClientError
from mqlake.client.message import ReceivedMessage
from mqlake.protocol.bodies.heartbeat import ConsumerData
from mqlake.protocol.command import Command
from mqlake.protocol.headers.transactions import CheckTransactionHeader


class ProducerMember(Protocol):
    """A producer, as its instance sees it."""

    @property
    def group(self) -> str:
        """Its producer group."""
        ...

    @property
    def can_check(self) -> bool:
        """Return whether it can tell how transactions ended."""
        ...

    def check(self, half: ReceivedMessage, header: CheckTransactionHeader, address: str) -> None:
        """Find out how a transaction ended, and report it to the broker at an address."""
        ...

    def take_reply(self, reply: Command) -> bool:
        """Take a reply (PUSH_REPLY_MESSAGE_TO_CLIENT); return whether somebody waits for it."""
        ...


class OperatorAnswers(Protocol):
    """The answers of a consumer to operators."""

    def running_info(self, *, with_stacks: bool) -> bytes:
        """Return its state, as JSON."""
        ...

    def queue_offsets(self, topic: str) -> bytes:
        """Return the offsets of a topic's queues, as JSON."""
        ...

    async def consume_directly(self, command: Command) -> bytes:
        """Handle the message of a request; return the result, as JSON."""
        ...


class ConsumerMember(Protocol):
    """A consumer, as its instance sees it."""

    @property
    def group(self) -> str:
        """Its consumer group."""
        ...

    @property
    def topics(self) -> Iterable[str]:
        """Topics that it is subscribed to."""
        ...

    def data(self) -> ConsumerData:
        """Return what heartbeats report to brokers."""
        ...

    def rebalance_soon(self) -> None:
        """Rebalance."""
        ...

    def routes_changed(self, topics: set[str]) -> None:
        """Note topics whose queues are on other brokers now."""
        ...

    def reset_offsets(self, command: Command) -> None:
        """Continue at the offsets to which an operator has reset the group on the broker."""
        ...

    @property
    def operator_answers(self) -> OperatorAnswers:
        """The object that answers operators."""
        ...


class ClientMembers:
    """The users of a client instance.

    Attributes:
        producers: by group; the last producer of a group answers for its transactions.
        consumers: by group; each group has one.
    """

    def __init__(self) -> None:
        self.producers: dict[str, list[ProducerMember]] = {}
        self.consumers: dict[str, ConsumerMember] = {}

    def add_producer(self, member: ProducerMember) -> None:
        """Add a producer."""
        self.producers.setdefault(member.group, []).append(member)

    def add_consumer(self, member: ConsumerMember, client_id: str) -> None:
        """Add a consumer.

        Raises:
            ClientError: the group already has a consumer here. Brokers could not tell them apart,
                and both would read the same queues.
        """
        if member.group in self.consumers:
            raise ClientError(
                f"client {client_id} already has a consumer of group {member.group}: give the "
                "new one another instance name"
            )
        self.consumers[member.group] = member

    def remove_consumer(self, member: ProducerMember | ConsumerMember) -> bool:
        """Remove a consumer; return whether it was a member."""
        if self.consumers.get(member.group) is not member:
            return False
        del self.consumers[member.group]
        return True

    def remove_producer(self, member: ProducerMember | ConsumerMember) -> bool:
        """Remove a producer; return whether it was the last one of its group."""
        members = self.producers.get(member.group, [])
        others = [other for other in members if other is not member]
        if len(others) == len(members):
            return False
        self.producers[member.group] = others
        if not others:
            del self.producers[member.group]
        return not others
