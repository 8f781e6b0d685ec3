"""SyncLiteSubscription.

Upstream: `ClientActivity`, `ClientProcessor`, `LiteSubscriptionService`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from mqlake.formats.config.topics import PERM_READ
from mqlake.grpc.call import Call
from mqlake.grpc.messages import (
    Code,
    LiteSubscriptionAction,
    OffsetOption,
    SyncLiteSubscriptionRequest,
    SyncLiteSubscriptionResponse,
)
from mqlake.protocol.bodies.lite import (
    LiteOffsetOption,
    LiteSubscriptionChange,
    LiteSubscriptionChanges,
)
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request as command
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.clients.client import GrpcClient
from mqlake.proxy.clients.settings_merge import lite_quota
from mqlake.proxy.errors import OK, StatusError, check
from mqlake.proxy.names import group_of, topic_of
from mqlake.proxy.sending.checks import check_lite_topic
from mqlake.proxy.served import ServedMethod
from mqlake.proxy.state import ProxyState

_PATIENCE: Final = 2.0
"""Seconds within which a broker must answer."""
_BIND_TOPIC: Final = "lite.bind.topic"
_MASTER: Final = 0
_BUFFER: Final = 300
"""Lite topics by which a client may exceed its quota: it checks the quota itself."""
_MOST_DIGITS: Final = 1 << 62


class LiteSubscriptionCalls:
    """Passes subscriptions to lite topics to all brokers of the parent topic."""

    def __init__(self, state: ProxyState) -> None:
        self._state = state
        # The parent topic and the group of each client that has subscriptions.
        self._known: dict[str, tuple[str, str]] = {}
        state.clients.on_end(self._ended)

    def calls(self) -> Sequence[ServedMethod]:
        """Return the handler of each method."""
        return (ServedMethod("SyncLiteSubscription", self._sync),)

    async def _sync(
        self, _call: Call, caller: Caller, request: SyncLiteSubscriptionRequest
    ) -> SyncLiteSubscriptionResponse:
        """Change the lite topics that a client consumes."""
        topic, group = topic_of(request.topic), group_of(request.group)
        self._state.clients.check_user(caller, self._state.clients.get(caller.client_id))
        action = LiteSubscriptionAction(request.action)
        names = list(dict.fromkeys(request.lite_topic_set))
        if action is LiteSubscriptionAction.PARTIAL_ADD:
            for name in names:
                check_lite_topic(name, self._state.settings.max_lite_topic_size)
        found = await self._state.brokers.group(group, caller)
        if found is None:
            raise StatusError(Code.ILLEGAL_CONSUMER_GROUP, f"group not found: {group}")
        if found.attributes.get(_BIND_TOPIC) != topic:
            reason = f"the group {group} is not bound to the topic {topic} ({_BIND_TOPIC})"
            raise StatusError(Code.ILLEGAL_TOPIC, reason)
        quota = lite_quota(found, self._state.settings)
        if len(names) > quota + _BUFFER:
            reason = f"{len(names)} lite topics are more than the quota of a client, {quota}"
            raise StatusError(Code.LITE_SUBSCRIPTION_QUOTA_EXCEEDED, reason)
        option = request.offset_option if request.HasField("offset_option") else None
        is_option = option is not None and action is LiteSubscriptionAction.PARTIAL_ADD
        change = LiteSubscriptionChange(
            action=action.name,
            client_id=caller.client_id,
            group=group,
            topic=topic,
            lite_topic_set=names,
            offset_option=_option(option) if is_option and option is not None else None,
            version=request.version,
        )
        await self._tell(caller, change)
        if self._state.clients.get(caller.client_id) is not None:
            self._known[caller.client_id] = topic, group
        return SyncLiteSubscriptionResponse(status=OK.status)

    async def _tell(self, caller: Caller, change: LiteSubscriptionChange) -> None:
        """Send a change to all brokers of its topic."""
        route = await self._state.brokers.route(change.topic, caller)
        masters = {data.broker_name for data in route.broker_datas if _MASTER in data.broker_addrs}
        readable = {data.broker_name for data in route.queue_datas if data.perm & PERM_READ}
        body = encode_body(LiteSubscriptionChanges([change]))
        asked = (
            self._state.brokers.request(
                name, command(RequestCode.LITE_SUBSCRIPTION_CTL, body=body), caller, _PATIENCE
            )
            for name in sorted(masters & readable)
        )
        for answer in await asyncio.gather(*asked):
            check(answer)

    def _ended(self, client: GrpcClient) -> None:
        """End the subscriptions of a client that is gone."""
        known = self._known.pop(client.client_id, None)
        if known is not None:
            topic, group = known
            change = LiteSubscriptionChange("COMPLETE_REMOVE", client.client_id, group, topic)
            self._state.background.start(
                self._tell(client.caller, change), "the end of subscriptions to lite topics"
            )


def _option(option: OffsetOption) -> LiteOffsetOption:
    kind = option.WhichOneof("offset_type")
    if kind is None or kind == "policy":
        return LiteOffsetOption("POLICY", option.policy)
    value = min(max(getattr(option, kind), 0), _MOST_DIGITS)
    return LiteOffsetOption(kind.upper(), value)
