"""The parts of kombu that mqlake uses, with types: kombu itself has none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mqlake.errors import MqlakeError

Payload = dict[str, Any]
"""A message as kombu's virtual transports keep it: body, properties, headers."""
BoundQueue = tuple[str, str | None, str]
"""A routing key, its regular expression if the exchange is a topic exchange, and a queue."""

if TYPE_CHECKING:

    class KombuConnection:
        """`kombu.Connection`."""

        hostname: str | None
        port: int | None
        userid: str | None
        password: object
        virtual_host: str | None
        ssl: object
        alt: list[str]
        connect_timeout: float | None
        transport_options: Mapping[str, Any]

    class ExchangeType:
        """`kombu.transport.virtual.exchange.ExchangeType`."""

        type: str

        def lookup(
            self, table: list[BoundQueue], exchange: str, routing_key: str, default: str | None
        ) -> set[str]: ...

    class KombuBrokerState:
        """`kombu.transport.virtual.BrokerState`."""

        exchanges: dict[str, dict[str, Any]]
        bindings: dict[tuple[str, str, str], object]

        def clear(self) -> None: ...
        def binding_delete(self, queue: str, exchange: str, routing_key: str) -> None: ...
        def queue_bindings_delete(self, queue: str) -> None: ...

    class Hub:
        """`kombu.asynchronous.Hub`, the event loop of a Celery worker."""

        def add_reader(self, fds: int, callback: Callable[..., object], *args: object) -> None: ...
        def remove_reader(self, fd: int) -> None: ...

    class VirtualMessage:
        """`kombu.transport.virtual.Message`."""

    class VirtualQoS:
        """`kombu.transport.virtual.QoS`."""

        prefetch_count: int

    class VirtualChannel:
        """`kombu.transport.virtual.Channel`."""

        closed: bool
        qos: VirtualQoS
        state: KombuBrokerState
        _consumers: set[str]
        _tag_to_queue: dict[str, str]

        def __init__(self, connection: Any, **kwargs: Any) -> None: ...
        def Message(self, payload: Payload, channel: VirtualChannel) -> VirtualMessage: ...  # noqa: N802
        def typeof(self, exchange: str) -> ExchangeType: ...
        def get_table(self, exchange: str) -> list[BoundQueue]: ...
        def close(self) -> None: ...
        def basic_qos(
            self, prefetch_size: int = 0, prefetch_count: int = 0, apply_global: bool = False
        ) -> None: ...
        def _inplace_augment_message(
            self, message: Payload, exchange: str, routing_key: str
        ) -> None: ...

    class VirtualTransport:
        """`kombu.transport.virtual.Transport`."""

        client: KombuConnection
        state: KombuBrokerState
        implements: Any
        connection_errors: tuple[type[BaseException], ...]
        channel_errors: tuple[type[BaseException], ...]

        def __init__(self, client: KombuConnection, **kwargs: Any) -> None: ...
        def establish_connection(self) -> object: ...
        def close_connection(self, connection: object) -> None: ...

    def dumps(value: object) -> str:
        """`kombu.utils.json.dumps`."""
        ...

    def loads(text: bytes) -> object:
        """`kombu.utils.json.loads`."""
        ...

    TRANSPORT_ALIASES: dict[str, str | Callable[[], str]]
else:
    try:
        from kombu.transport import TRANSPORT_ALIASES
        from kombu.transport.virtual import Channel as VirtualChannel
        from kombu.transport.virtual import Transport as VirtualTransport  # noqa: F401
        from kombu.utils.json import dumps, loads  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "kombu":
            raise
        raise MqlakeError("kombu is not installed: pip install 'mqlake[celery]'") from None

    # These names appear in annotations only.
    KombuConnection = ExchangeType = KombuBrokerState = VirtualMessage = VirtualQoS = Hub = object


def register(scheme: str, transport: str) -> None:
    """Register a transport with kombu for the URLs of a scheme.

    Args:
        transport: "module:class".
    """
    TRANSPORT_ALIASES[scheme] = transport
