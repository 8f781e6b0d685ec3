"""The settings that clients send, completed by the service.

Upstream: `GrpcClientSettingsManager`, `ClientActivity`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mqlake.formats.config.subscription_group import (
    ExponentialRetryPolicy,
    GroupRetryPolicy,
    SubscriptionGroup,
)
from mqlake.grpc.messages import (
    ClientType,
    Code,
    CustomizedBackoff,
    Duration,
    ExponentialBackoff,
    FilterType,
    Metric,
    RetryPolicy,
    Settings,
    SubscriptionEntry,
)
from mqlake.protocol.bodies.heartbeat import (
    ACTIVE,
    PASSIVE,
    ConsumerData,
    Heartbeat,
    ProducerData,
    Subscription,
)
from mqlake.proxy.errors import StatusError
from mqlake.proxy.names import group_of, topic_of
from mqlake.proxy.retry_delays import listed_delays
from mqlake.proxy.settings import ProxySettings

LARGEST: Final = 256 << 10
"""Bytes of the settings of one client."""
_INT32: Final = (1 << 31) - 1
_LONGEST: Final = 315_360_000_000
"""Milliseconds of ten years."""
_CONSUME_TYPES: Final[dict[int, str]] = {
    ClientType.PUSH_CONSUMER: PASSIVE,
    ClientType.LITE_PUSH_CONSUMER: PASSIVE,
    ClientType.SIMPLE_CONSUMER: ACTIVE,
    ClientType.LITE_SIMPLE_CONSUMER: ACTIVE,
    ClientType.PULL_CONSUMER: ACTIVE,
}
_LITE_QUOTA: Final = "lite.sub.client.quota"


def producer_heartbeat(client_id: str, settings: Settings, most: int) -> Heartbeat:
    """Return a producer's heartbeat: it is in a group of the name of each topic.

    Args:
        most: the maximum of topics.

    Raises:
        StatusError: the name of a topic is illegal, or there are too many.
    """
    topics = settings.publishing.topics
    _check_count(len(topics), most)
    groups = [ProducerData(topic_of(each)) for each in topics]
    return Heartbeat(client_id, producer_data_set=groups)


def consumer_heartbeat(client_id: str, settings: Settings, most: int, now: int) -> Heartbeat:
    """Return a consumer's heartbeat.

    Args:
        most: the maximum of topics.
        now: milliseconds since 1970: the version of the subscriptions.

    Raises:
        StatusError: the client is of no such type, a name is illegal, or there are too many topics.
    """
    consume_type = _CONSUME_TYPES.get(settings.client_type)
    if consume_type is None:
        reason = f"a client of type {settings.client_type} has no subscription"
        raise StatusError(Code.UNRECOGNIZED_CLIENT_TYPE, reason)
    entries = settings.subscription.subscriptions
    _check_count(len(entries), most)
    data = ConsumerData(
        group_of(settings.subscription.group),
        consume_type=consume_type,
        subscription_data_set=list(_subscriptions(entries, now)),
    )
    return Heartbeat(client_id, consumer_data_set=[data])


def _check_count(count: int, most: int) -> None:
    if count > most:
        reason = f"the settings name {count} topics; the maximum is {most}"
        raise StatusError(Code.BAD_REQUEST, reason)


def _subscriptions(entries: Iterable[SubscriptionEntry], now: int) -> Iterable[Subscription]:
    for entry in entries:
        is_sql = entry.expression.type == FilterType.SQL
        yield Subscription(
            topic=topic_of(entry.topic),
            sub_version=now,
            sub_string=entry.expression.expression or "*",
            expression_type="SQL92" if is_sql else "TAG",
        )


def for_producer(settings: Settings, own: ProxySettings) -> Settings:
    """Return the settings of a producer as it is answered."""
    found = _copy(settings)
    backoff = ExponentialBackoff(
        initial=duration(own.grpc_client_producer_backoff_initial_millis),
        max=duration(own.grpc_client_producer_backoff_max_millis),
        multiplier=own.grpc_client_producer_backoff_multiplier,
    )
    attempts = own.grpc_client_producer_max_attempts
    found.backoff_policy.CopyFrom(RetryPolicy(max_attempts=attempts, exponential_backoff=backoff))
    found.publishing.validate_message_type = own.enable_topic_message_type_check
    found.publishing.max_body_size = own.max_message_size
    return found


def for_consumer(
    settings: Settings, own: ProxySettings, group: SubscriptionGroup | None
) -> Settings:
    """Return the settings of a consumer as it is answered.

    Args:
        group: the settings of its group; None if the group does not exist.
    """
    found, group = _copy(settings), group or SubscriptionGroup()
    policy = _backoff(group.group_retry_policy)
    retries = group.retry_max_times
    policy.max_attempts = retries + 1 if 0 <= retries < _INT32 else _INT32
    found.backoff_policy.CopyFrom(policy)
    subscription = found.subscription
    subscription.fifo = group.consume_message_orderly
    subscription.receive_batch_size = own.grpc_client_consumer_long_polling_batch_size
    longest = own.grpc_client_consumer_max_long_polling_timeout_millis
    subscription.lite_subscription_quota = lite_quota(group, own)
    subscription.max_lite_topic_size = own.max_lite_topic_size
    subscription.long_polling_timeout.CopyFrom(duration(longest))
    return found


def lite_quota(group: SubscriptionGroup, own: ProxySettings) -> int:
    """Return how many lite topics one client of a group may subscribe to."""
    text = group.attributes.get(_LITE_QUOTA, "")
    is_number = text.isascii() and text.isdigit() and len(text) < 10
    return int(text) if is_number else own.lite_subscription_quota


def _copy(settings: Settings) -> Settings:
    found = Settings()
    found.CopyFrom(settings)
    # Python's client before 5.1.2 expects this field.
    found.metric.CopyFrom(Metric(on=False))
    return found


def _backoff(policy: GroupRetryPolicy) -> RetryPolicy:
    if policy.type == "EXPONENTIAL":
        grown = policy.exponential_retry_policy or ExponentialRetryPolicy()
        backoff = ExponentialBackoff(
            initial=duration(grown.initial),
            max=duration(grown.max),
            multiplier=min(max(grown.multiplier, 1), _INT32),
        )
        return RetryPolicy(exponential_backoff=backoff)
    delays = map(duration, listed_delays(policy))
    return RetryPolicy(customized_backoff=CustomizedBackoff(next=delays))


def duration(milliseconds: int) -> Duration:
    """Return a time as clients read it: not below 0, nor above what the message can hold."""
    milliseconds = min(max(milliseconds, 0), _LONGEST)
    return Duration(seconds=milliseconds // 1000, nanos=milliseconds % 1000 * 1_000_000)
