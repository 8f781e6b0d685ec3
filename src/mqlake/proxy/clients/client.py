"""One client of the service."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from mqlake.grpc.messages import Settings, TelemetryCommand
from mqlake.protocol.bodies.heartbeat import Heartbeat
from mqlake.proxy.brokers.port import Caller


class CommandStream(Protocol):
    """The Telemetry stream of a client."""

    def send(self, command: TelemetryCommand) -> None:
        """Send a command to the client."""
        ...

    def ask(self, command: TelemetryCommand, nonce: str) -> Awaitable[TelemetryCommand]:
        """Send a command, and return what the client answers to its nonce."""
        ...


class GrpcClient:
    """A client that has sent its settings.

    Attributes:
        settings: those that it was answered: its own, completed by the service.
        caller: as whom it registers with brokers: as the last one who sent settings.
        heartbeat: its groups and subscriptions, as brokers know them.
        size: of the settings, in bytes.
        owner: to whose share of the table it counts.
        seen: when it was last heard of, milliseconds.
        stream: its Telemetry stream; None while it has none.
    """

    def __init__(
        self, settings: Settings, caller: Caller, heartbeat: Heartbeat, owner: str, seen: int
    ) -> None:
        self.settings, self.caller, self.heartbeat = settings, caller, heartbeat
        self.owner, self.seen = owner, seen
        self.size = settings.ByteSize()
        self.stream: CommandStream | None = None

    def use(self, stream: CommandStream | None) -> None:
        """Note the stream over which the client can be reached; None: it cannot be reached any
        more.
        """
        self.stream = stream

    def note_alive(self, seen: int) -> None:
        """Note that the client was heard of."""
        self.seen = seen

    @property
    def client_id(self) -> str:
        """The id of the client."""
        return self.caller.client_id

    @property
    def type(self) -> int:
        """The type of the client, of `ClientType`."""
        return self.settings.client_type

    @property
    def is_consumer(self) -> bool:
        """Whether it is a member of a consumer group."""
        return bool(self.heartbeat.consumer_data_set)

    @property
    def group(self) -> str:
        """The consumer group of the client on the cluster; "" for a producer."""
        consumers = self.heartbeat.consumer_data_set
        return consumers[0].group_name if consumers else ""

    @property
    def max_attempts(self) -> int:
        """How often a message is delivered to the client's group before it is a dead letter."""
        return self.settings.backoff_policy.max_attempts
