"""Headers with which clients report to a broker, and are notified about each other.

Upstream: `UnregisterClientRequestHeader`, `GetConsumerListByGroupRequestHeader`,
`NotifyConsumerIdsChangedRequestHeader`.
"""

from __future__ import annotations

import msgspec

from mqlake.protocol.header import Header


class UnregisterClientHeader(Header):
    """UNREGISTER_CLIENT: the groups that a client leaves."""

    client_id: str = msgspec.field(name="clientID")
    producer_group: str | None = None
    consumer_group: str | None = None


class ConsumerGroupHeader(Header):
    """GET_CONSUMER_LIST_BY_GROUP, NOTIFY_CONSUMER_IDS_CHANGED: the group."""

    consumer_group: str
