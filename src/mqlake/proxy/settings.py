"""The settings of the gRPC service, under the names of RocketMQ's proxy (`rmq-proxy.json`)."""

from __future__ import annotations

import msgspec


class ProxySettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Limits and defaults of the service; their names and defaults are those of upstream.

    Times are in milliseconds unless the name says otherwise, sizes in bytes.

    Attributes:
        authentication_enabled, authorization_enabled: whether a proxy before other brokers checks
            who calls, and what the caller may do. In local mode the broker's settings decide.
        max_message_size: of the body of a message.
        max_batch_messages: how many messages one call may send.
        max_user_property_size: of all user properties of a message, with its tag and keys.
        user_property_max_num: how many of them a message may have.
        max_message_group_size: a message group has fewer bytes than this.
        max_delay_time_mills: how far ahead a delivery time may be.
        max_transaction_recovery_second: seconds until the first check of a transaction.
        enable_topic_message_type_check: refuse messages whose type is not their topic's.
        transaction_data_expire_millis: how long a transaction that was sent, or checked, can be
            ended by its id.
        channel_expired_timeout: how long a client is known without a heartbeat.
        max_client_nums: how many clients are known.
        max_telemetry_streams: how many Telemetry streams may be open.
        max_client_settings_size: how many bytes the settings of all of them may have.
        max_address_share: percent of a table that one address may fill while more than half of the
            table is in use.
        max_topics_per_client: how many topics one client may publish or subscribe to.
        max_renewals, max_renewals_per_client: how many received messages are renewed.
        max_polls, max_polls_per_client: how many calls wait for messages.
        request_timeout_millis: how long an answer of a broker is waited for at most, also if the
            client waits longer.
        default_invisible_time_mills, min_invisible_time_mills_for_recv, max_invisible_time_mills:
            of received messages.
    """

    authentication_enabled: bool = False
    authorization_enabled: bool = False
    max_message_size: int = 4 << 20
    max_batch_messages: int = 1024
    enable_message_body_empty_check: bool = True
    max_user_property_size: int = 16 << 10
    user_property_max_num: int = 128
    max_message_group_size: int = 64
    max_delay_time_mills: int = 86_400_000
    max_transaction_recovery_second: int = 3600
    enable_topic_message_type_check: bool = True
    transaction_data_expire_millis: int = 120_000
    transaction_data_max_num: int = 100_000
    channel_expired_timeout: int = 120_000
    max_client_nums: int = 100_000
    max_telemetry_streams: int = 100_000
    max_client_settings_size: int = 128 << 20
    max_address_share: int = 50
    max_topics_per_client: int = 1000
    lite_subscription_quota: int = 2000
    max_lite_topic_size: int = 64
    max_renewals: int = 200_000
    max_renewals_per_client: int = 20_000
    max_polls: int = 50_000
    max_polls_per_client: int = 2000
    default_invisible_time_mills: int = 60_000
    min_invisible_time_mills_for_recv: int = 10_000
    max_invisible_time_mills: int = 43_200_000
    grpc_client_producer_max_attempts: int = 3
    grpc_client_producer_backoff_initial_millis: int = 10
    grpc_client_producer_backoff_max_millis: int = 1000
    grpc_client_producer_backoff_multiplier: int = 2
    grpc_client_consumer_min_long_polling_timeout_millis: int = 5000
    grpc_client_consumer_max_long_polling_timeout_millis: int = 20_000
    grpc_client_consumer_long_polling_batch_size: int = 32
    long_polling_reserve_time_in_millis: int = 100
    request_timeout_millis: int = 60_000
