"""What the service knows of brokers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol

from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.protocol.bodies.heartbeat import Heartbeat
from mqlake.protocol.bodies.route import TopicRouteData
from mqlake.protocol.command import VERSION, Command
from mqlake.protocol.signature import Credentials
from mqlake.remoting.connection import Request


class Caller(NamedTuple):
    """The client for which a broker is asked.

    Attributes:
        client_id: as it calls itself.
        address: its "ip:port".
        credentials: with which requests to brokers are signed; None if it has not signed its call.
        language: of remoting's languages.
    """

    client_id: str
    address: str
    credentials: Credentials | None = None
    language: str = "OTHER"
    version: int = VERSION


UNSPECIFIED: Final = "UNSPECIFIED"
"""The type of messages that nobody sends: a topic for them accepts no message."""


class Destination(NamedTuple):
    """Where messages of a topic can be sent.

    Attributes:
        message_type: the attribute `message.type` of the topic; "" if the topic lacks it,
            UNSPECIFIED if the topic does not exist.
        queues: how many queues of each broker can be written, in the order of the brokers.
    """

    message_type: str
    queues: tuple[tuple[str, int], ...]


Pushed = Callable[[Command, str | None], Awaitable[Command | None]]
"""Serves a request of a broker to a client; returns the response, None to send none.

The second argument is the id of the client that is meant; None for any client of the group in the
request."""


class BrokerPort(Protocol):
    """The brokers that the service asks.

    Each method may raise:

    - RemotingError: the broker refuses, or the request is refused before it is sent.
    - RequestTimeoutError, ConnectionFailedError: the broker does not answer.
    """

    @property
    def is_authenticating(self) -> bool:
        """Whether brokers check who signs a request."""
        ...

    @property
    def refuses_unsigned(self) -> bool:
        """Whether every call must be signed; otherwise brokers know which requests need it."""
        ...

    @property
    def answer_at_once(self) -> bool:
        """Whether brokers answer most requests without any wait, and need no task to be asked."""
        ...

    def serve_pushed(self, serve: Pushed) -> None:
        """Pass requests of brokers to clients from now on to a function."""
        ...

    async def credentials(
        self, name: str, address: str, *, is_doubted: bool = False
    ) -> Credentials | None:
        """Return the credentials of a user; None if there is no such user.

        Args:
            address: the "ip:port" of who claims to be this user.
            is_doubted: whether a call does not fit the ones that were returned before, so that the
                user may have changed since.
        """
        ...

    def check(self, command: Command, caller: Caller) -> None:
        """Refuse a request that its sender may not make, without sending it."""
        ...

    async def route(self, topic: str, caller: Caller) -> TopicRouteData:
        """Return where a topic's queues are.

        Raises:
            RemotingError: TOPIC_NOT_EXIST: nowhere.
        """
        ...

    async def destination(self, topic: str) -> Destination:
        """Return where messages of a topic can be sent."""
        ...

    async def message_type(self, topic: str) -> str:
        """Return the attribute `message.type` of a topic; "" if it has none."""
        ...

    async def group(self, name: str, caller: Caller) -> SubscriptionGroup | None:
        """Return the settings of a consumer group; None if it does not exist.

        A broker may create it, so the caller must be allowed to be a member of it.
        """
        ...

    async def request(
        self, broker: str, command: Command | Request, caller: Caller, seconds: float
    ) -> Command:
        """Return the response of a broker, whatever its code.

        Args:
            broker: the name of the broker.
            seconds: how long to wait for it.
        """
        ...

    async def poll(
        self,
        broker: str,
        command: Command,
        caller: Caller,
        seconds: float,
        late: Callable[[Command], None],
    ) -> Command:
        """Return the response to a request that may wait for messages at the broker.

        Args:
            late: receives the response if this is cancelled, but the broker answers nevertheless.
        """
        ...

    async def register(self, caller: Caller, heartbeat: Heartbeat) -> None:
        """Make a client known to the brokers of its topics, or tell them that it is there."""
        ...

    def unregister(self, caller: Caller, heartbeat: Heartbeat) -> None:
        """Let brokers forget a client that was registered."""
        ...
