"""What administrators ask about lite topics (upstream: `LiteManagerProcessor`)."""

from __future__ import annotations

from collections.abc import Coroutine
from heapq import nlargest
from typing import Any, Final

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.lite.names import (
    expiration_minutes,
    is_parent,
    lite_topic_of,
    queue_name,
)
from mqlake.formats.config.topics import Topic
from mqlake.protocol.bodies.lite import (
    BrokerLiteInfo,
    LiteClientInfo,
    LiteGroupInfo,
    LiteLag,
    LiteOffsets,
    LiteSubscriber,
    LiteTopicInfo,
    LiteTopicOffset,
    ParentTopicInfo,
)
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.lite import (
    LiteClientHeader,
    LiteGroupHeader,
    LiteTopicHeader,
    ParentTopicHeader,
    TriggerLiteDispatchHeader,
)
from mqlake.remoting.connection import Peer
from mqlake.remoting.slices import Job, sort

_MOST_RETURNED: Final = 10_000
_STORE: Final = "mqlake"
_INVALID: Final = ResponseCode.INVALID_PARAMETER

Later = Command | Coroutine[Any, Any, Command]


class LiteAdmin:
    """Answers questions of administrators about lite topics."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime, self._lite = state, runtime, state.lite
        self._offsets = state.store.config.consumer_offsets

    def broker_info(self, peer: Peer, request: Command) -> Later:
        """Return how many lite topics and subscriptions there are."""
        return self._runtime.slices.serve(peer, self._broker_info(request))

    def _broker_info(self, request: Command) -> Job[Command]:
        lite, groups = self._lite, (yield from self._groups())
        parents = yield from self._lite.parents()
        body = BrokerLiteInfo(
            store_type=_STORE,
            max_lmq_num=self._runtime.settings.max_lmq_consume_queue_num,
            current_lmq_num=lite.room.count(),
            lite_subscription_count=lite.subscriptions.count,
            order_info_count=len(lite.held),
            cq_table_size=lite.room.count(),
            offset_table_size=len(self._offsets),
            event_map_size=len(lite.events),
            topic_meta={each.topic_name: expiration_minutes(each) for each in parents},
            group_meta=groups,
        )
        return response(request, body=encode_body(body))

    def _groups(self) -> Job[dict[str, list[str]]]:
        """Return the groups that consume lite topics, by their parent topic."""
        found: dict[str, list[str]] = {}
        for name in (yield from sort(list(self._state.groups))):
            topic = self._lite.group(name).topic
            if topic is not None:
                found.setdefault(topic, []).append(name)
            yield
        return found

    def parent_info(self, peer: Peer, request: Command) -> Later:
        """Return how many lite topics a parent topic has, and its groups."""
        topic = self._parent(request.header(ParentTopicHeader).topic)
        return self._runtime.slices.serve(peer, self._parent_info(request, topic))

    def _parent_info(self, request: Command, topic: Topic) -> Job[Command]:
        groups = yield from self._groups()
        light = self._state.store.light
        body = ParentTopicInfo(
            topic=topic.topic_name,
            ttl=expiration_minutes(topic),
            groups=groups.get(topic.topic_name),
            lmq_num=self._lite.room.count(),
            lite_topic_count=0 if light is None else light.count(topic.topic_name),
        )
        return response(request, body=encode_body(body))

    def topic_info(self, _peer: Peer, request: Command) -> Command:
        """Return the offsets and the subscribers of a lite topic."""
        header = request.header(LiteTopicHeader)
        topic = self._parent(header.parent_topic).topic_name
        queue, queues = queue_name(topic, header.lite_topic), self._lite.queues
        high = queues.max_offset(topic, queue)
        found = LiteTopicOffset()
        if high:
            found = LiteTopicOffset(
                queues.min_offset(topic, queue), high, queues.last_timestamp(topic, queue)
            )
        body = LiteTopicInfo(
            parent_topic=topic,
            lite_topic=header.lite_topic,
            subscriber=[
                LiteSubscriber(each.client_id, each.group)
                for each in self._lite.subscriptions.subscribers(queue)[:_MOST_RETURNED]
            ],
            topic_offset=found,
        )
        return response(request, body=encode_body(body))

    def client_info(self, _peer: Peer, request: Command) -> Command:
        """Return the lite topics that a client is subscribed to."""
        header = request.header(LiteClientHeader)
        topic = self._parent(header.parent_topic).topic_name
        if self._group(header.group) != topic:
            reason = f"Subscription [{header.group}]-[{topic}] not match."
            raise RemotingError(_INVALID, reason)
        client = self._lite.subscriptions.get(header.client_id)
        body = LiteClientInfo(
            parent_topic=topic,
            group=header.group,
            client_id=header.client_id,
            last_access_time=self._lite.events.seen(header.client_id),
            lite_topic_count=-1 if client is None else len(client.queues),
            lite_topic_set=None
            if client is None
            else list(client.queues)[: max(0, min(header.max_count, _MOST_RETURNED))],
        )
        return response(request, body=encode_body(body))

    def group_info(self, peer: Peer, request: Command) -> Later:
        """Return how much a group has not consumed: of one lite topic, or of those with most."""
        header = request.header(LiteGroupHeader)
        topic = self._lite_group(header.group)
        if header.lite_topic:
            body = self._one(header, topic, queue_name(topic, header.lite_topic))
            return response(request, body=encode_body(body))
        job = self._all(request, header, topic)
        return self._runtime.slices.serve(peer, job, size=len(request.body))

    def _one(self, header: LiteGroupHeader, topic: str, queue: str) -> LiteGroupInfo:
        queues, group = self._lite.queues, header.group
        high, known = queues.max_offset(topic, queue), self._offsets.query(group, queue, 0)
        lag, earliest, offsets = -1, -1, None
        if high and known is not None:
            lag, earliest = high - known, queues.timestamp(topic, queue, known)
            last = queues.timestamp(topic, queue, known - 1) if known else 0
            offsets = LiteOffsets(high, known, last_timestamp=max(0, last))
        elif high:
            lag = 0
        return LiteGroupInfo(
            group=group,
            parent_topic=topic,
            lite_topic=header.lite_topic,
            earliest_unconsumed_timestamp=earliest,
            total_lag_count=lag,
            lite_topic_offset_wrapper=offsets,
        )

    def _all(self, request: Command, header: LiteGroupHeader, topic: str) -> Job[Command]:
        """Look at the lite topics of which the group has an offset."""
        lags: list[LiteLag] = []
        prefix = queue_name(topic, "")
        for queue in self._offsets.topics_of(header.group):
            if queue.startswith(prefix):
                known = self._offsets.query(header.group, queue, 0) or 0
                lag = self._lite.queues.max_offset(topic, queue) - known
                if lag > 0:
                    stored = self._lite.queues.timestamp(topic, queue, known)
                    lags.append(LiteLag(lite_topic_of(queue), lag, stored))
            yield
        most = max(0, min(header.top_k, _MOST_RETURNED))
        times = [each.earliest_unconsumed_timestamp for each in lags]
        body = LiteGroupInfo(
            group=header.group,
            parent_topic=topic,
            earliest_unconsumed_timestamp=min(times, default=-1),
            total_lag_count=sum(each.lag_count for each in lags),
            lag_count_top_k=nlargest(most, lags, key=lambda each: each.lag_count),
            lag_timestamp_top_k=nlargest(
                most, lags, key=lambda each: -each.earliest_unconsumed_timestamp
            ),
        )
        return response(request, body=encode_body(body))

    def trigger(self, _peer: Peer, request: Command) -> Command:
        """Look for messages for one client, or for all clients of a group."""
        header = request.header(TriggerLiteDispatchHeader)
        self._lite_group(header.group)
        clients = (
            [header.client_id]
            if header.client_id
            else [each.client_id for each in self._lite.subscriptions.of_group(header.group)]
        )
        for client_id in clients[:_MOST_RETURNED]:
            self._runtime.slices.start(self._lite.events.complete(client_id))
        return response(request)

    # Checks

    def _parent(self, name: str) -> Topic:
        topic = self._state.topics.get(name)
        if topic is None:
            raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, f"Topic [{name}] not exist.")
        if not is_parent(topic):
            raise RemotingError(_INVALID, f"Topic [{name}] type not match.")
        return topic

    def _group(self, name: str) -> str | None:
        if name not in self._state.groups:
            reason = f"Group [{name}] not exist."
            raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, reason)
        return self._lite.group(name).topic

    def _lite_group(self, name: str) -> str:
        topic = self._group(name)
        if topic is None:
            raise RemotingError(_INVALID, f"Group [{name}] is not a LITE group.")
        return topic
