"""The settings of the gRPC service, under the names of RocketMQ's proxy (`rmq-proxy.json`)."""

from __future__ import annotations

from typing import Annotated

import msgspec

from mqlake.store.bounds import INT_MAX, Count, CountOrNone, Interval, Pause, Within, check

_MOST_BYTES = 1 << 30
_LONGEST = 365 * 24 * 60 * 60 * 1000
Milliseconds = Annotated[int, Within(1, _LONGEST)]
Bytes = Annotated[int, Within(1, _MOST_BYTES)]
RequestSize = Annotated[int, Within(1024, 256 << 20)]


class ProxySettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Limits and defaults of the service; their names and defaults are those of upstream.

    Times are in milliseconds unless the name says otherwise, sizes in bytes.

    Raises:
        StoreError: a value is not allowed.
    """

    # Users
    authentication_enabled: bool = False
    """Whether calls must be signed by a user of the brokers. In local mode, the broker's setting
    decides."""
    authorization_enabled: bool = False
    """Whether users need permissions for what they call; it needs `authenticationEnabled`. In local
    mode, the broker's setting decides."""

    # Messages
    max_message_size: Annotated[int, Within(1, 128 << 20)] = 4 << 20
    """Maximum bytes of the body of a message, and of all bodies in one call. In local mode, the
    broker's setting decides."""
    max_batch_messages: Annotated[int, Within(1, 32_767)] = 1024
    """Maximum number of messages that one call may send. RocketMQ's proxy has no such limit."""
    enable_message_body_empty_check: bool = True
    """Whether messages without a body are refused."""
    max_user_property_size: Annotated[int, Within(1, 32_767)] = 16 << 10
    """Maximum bytes of all user properties of a message, with its tag and keys."""
    user_property_max_num: Annotated[int, Within(0, 10_000)] = 128
    """Maximum number of user properties of a message."""
    max_message_group_size: Annotated[int, Within(1, 32_767)] = 64
    """A message group has fewer bytes than this."""
    max_delay_time_mills: Milliseconds = 86_400_000
    """How far ahead a delivery time may be."""
    enable_topic_message_type_check: bool = True
    """Whether messages are refused whose type is not their topic's."""
    lite_subscription_quota: CountOrNone = 2000
    """Maximum number of lite topics to which one client subscribes."""
    max_lite_topic_size: Annotated[int, Within(1, 255)] = 64
    """Maximum characters of the name of a lite topic."""

    # Transactions
    max_transaction_recovery_second: Annotated[int, Within(0, INT_MAX)] = 3600
    """Maximum seconds until the first check of a transaction."""
    transaction_data_expire_millis: Milliseconds = 120_000
    """How long a transaction that was sent, or checked, can be ended by its id."""
    transaction_data_max_num: Annotated[int, Within(1, 10_000_000)] = 100_000
    """Maximum number of transactions that can be ended."""

    # Clients
    channel_expired_timeout: Annotated[int, Within(1, 1 << 40)] = 120_000
    """How long a client is known without a heartbeat."""
    max_client_nums: Count = 100_000
    """Maximum number of clients that are known."""
    max_telemetry_streams: Count = 100_000
    """Maximum number of open Telemetry streams."""
    max_client_settings_size: Bytes = 128 << 20
    """Maximum bytes of the settings of all clients."""
    max_address_share: Annotated[int, Within(1, 100)] = 50
    """Percent of a limit for all. While more than half of the limit is in use, one address can add
    entries only until it has this share."""
    max_topics_per_client: Count = 1000
    """Maximum number of topics that one client may publish or subscribe to."""
    grpc_max_concurrent_calls_per_connection: Annotated[int, Within(1, 1_000_000)] = 4096
    """Maximum number of calls of one connection at a time."""
    grpc_max_inbound_message_size: RequestSize = 8 << 20
    """Maximum bytes of a request to send messages; it may have twice `maxMessageSize` in any case.
    RocketMQ's default: 130 MiB, for every request."""
    grpc_max_inbound_request_size: RequestSize = 1 << 20
    """Maximum bytes of any other request. RocketMQ's proxy has no such setting."""
    grpc_client_idle_time_mills: Annotated[int, Within(0, _LONGEST)] = 120_000
    """How long a connection without calls stays open; 0: for ever."""

    # Receiving
    max_renewals: Count = 200_000
    """Maximum number of received messages whose invisible time is extended."""
    max_renewals_per_client: Count = 20_000
    """The same, for one client."""
    max_polls: Count = 50_000
    """Maximum number of calls that wait for messages."""
    max_polls_per_client: Count = 2000
    """The same, for one client."""
    request_timeout_millis: Interval = 60_000
    """How long an answer of a broker is waited for at most, also if the client waits longer."""
    default_invisible_time_mills: Milliseconds = 60_000
    """How long received messages are invisible at first if the service extends that time."""
    min_invisible_time_mills_for_recv: Milliseconds = 10_000
    """Minimum invisible time of received messages."""
    max_invisible_time_mills: Milliseconds = 43_200_000
    """Maximum invisible time of received messages."""
    long_polling_reserve_time_in_millis: Pause = 100
    """How much earlier a wait for messages ends than the call's deadline."""

    # Sent to clients
    grpc_client_producer_max_attempts: Annotated[int, Within(1, 1000)] = 3
    """How often a producer tries to send a message."""
    grpc_client_producer_backoff_initial_millis: Pause = 10
    """The first pause between two attempts."""
    grpc_client_producer_backoff_max_millis: Pause = 1000
    """The longest pause between two attempts."""
    grpc_client_producer_backoff_multiplier: Annotated[int, Within(1, 1000)] = 2
    """By what each pause is longer than the one before."""
    grpc_client_consumer_min_long_polling_timeout_millis: Interval = 5000
    """Minimum time for which a receive waits."""
    grpc_client_consumer_max_long_polling_timeout_millis: Interval = 20_000
    """Maximum time for which a receive waits."""
    grpc_client_consumer_long_polling_batch_size: Annotated[int, Within(1, 1024)] = 32
    """How many messages a push consumer receives at a time."""

    def __post_init__(self) -> None:
        check(self)
