"""Headers of what clients tell a broker about themselves, and are told of each other.

Upstream: `UnregisterClientRequestHeader`, `GetConsumerListByGroupRequestHeader`,
`NotifyConsumerIdsChangedRequestHeader`.
"""

from __future__ import annotations

import msgspec

from mqlake.protocol.header import Header


class UnregisterClientHeader(Header):
    """UNREGISTER_CLIENT: of which groups a client is no member any more."""

    client_id: str = msgspec.field(name="clientID")
    producer_group: str | None = None
    consumer_group: str | None = None


class ConsumerGroupHeader(Header):
    """GET_CONSUMER_LIST_BY_GROUP, NOTIFY_CONSUMER_IDS_CHANGED: which group."""

    consumer_group: str
