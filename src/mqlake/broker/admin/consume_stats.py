"""Offsets and lag of groups, the groups of topics, and the age of messages."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Sequence
from typing import Any

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.formats.config.topics import Topic
from mqlake.protocol.bodies.connections import GroupList
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.queue_tables import (
    encode_array,
    encode_queue,
    encode_with_table,
    join_queues,
)
from mqlake.protocol.bodies.route import TopicList
from mqlake.protocol.bodies.stats import OffsetWrapper, QueueTimeSpan
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import (
    BrokerConsumeStatsHeader,
    ConsumeStatsHeader,
    GroupNameHeader,
    TopicGroupHeader,
    TopicNameHeader,
)
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.members import Members
from mqlake.remoting.route import Answer, Route
from mqlake.remoting.slices import Job, sort

Later = Answer | Coroutine[Any, Any, Answer]
"""An answer, which is returned at once if it is short."""


class ConsumeStatsAdmin:
    """Answers requests about the progress of groups."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime
        self._offsets = state.store.config.consumer_offsets
        self._reads = state.store.reads
        self._static_topics = state.static_topics

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.GET_CONSUME_STATS, self._group, Permission.READ),
            Route(RequestCode.GET_BROKER_CONSUME_STATS, self._all, Permission.READ),
            Route(RequestCode.QUERY_CONSUME_TIME_SPAN, self._time_span, Permission.READ),
            Route(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, self._who, Permission.READ),
            Route(RequestCode.QUERY_TOPICS_BY_CONSUMER, self._topics, Permission.READ),
            Route(RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, self._subscription, Permission.READ),
        )

    def _group(self, peer: Peer, request: Command) -> Later:
        return self._runtime.slices.serve(peer, self._stats_of(request))

    def _stats_of(self, request: Command) -> Job[Command]:
        header = request.header(ConsumeStatsHeader)
        group, pairs, tps = header.consumer_group, Members(), 0.0
        for topic in (yield from self._wanted(header)):
            yield from self._table(group, topic, topic.read_queue_nums, pairs, [0, 0])
            tps += self._state.stats.got_tps(group, topic.topic_name)
        body = _encode(pairs, tps)
        yield
        return response(request, body=body)

    def _wanted(self, header: ConsumeStatsHeader) -> Job[list[Topic]]:
        """Return the requested topics; by default, those for which the group has offsets.

        Topics to which its consumers no longer subscribe are left out (upstream:
        `getTopicsForCollectingConsumeStats`).
        """
        names = [name.strip() for name in (header.topic_list or "").split(";") if name.strip()]
        if not names and header.topic:
            names = [header.topic]
        if not names:
            known = self._offsets.topics_of(header.consumer_group)
            return (yield from self._consumed(header.consumer_group, known))
        return (yield from self._known(names))

    def _consumed(self, group: str, names: Iterable[str]) -> Job[list[Topic]]:
        """Return the topics of these that the group's consumers, if any, subscribe to."""
        online, consumed = self._state.clients.consumers.get(group), list[str]()
        for name in names:
            if not online or name in online.subscriptions:
                consumed.append(name)
            yield
        return (yield from self._known((yield from sort(consumed))))

    def _known(self, names: Iterable[str]) -> Job[list[Topic]]:
        known: list[Topic] = []
        for name in names:
            if (topic := self._state.topics.get(name)) is not None:
                known.append(topic)
            yield
        return known

    def _table(
        self, group: str, topic: Topic, queues: int, pairs: Members, sums: list[int]
    ) -> Job[None]:
        """Append a group's offset in each queue of a topic.

        Args:
            pairs: entries of a table of queues.
            sums: the number of messages that it has not consumed, and of those that it has pulled
                and not consumed.

        Raises:
            RemotingError: the answer would have too many entries.
        """
        name, broker = topic.topic_name, self._runtime.settings.broker_name
        self._check_room(len(pairs) + queues)
        for each in range(queues):
            found = self._queue(group, name, each)
            sums[0] += found.lag
            sums[1] += found.in_flight
            pairs.append(encode_queue(MessageQueue(name, broker, each), found))
            yield

    def _check_room(self, entries: int) -> None:
        most = self._runtime.settings.max_answer_entries
        if entries > most:
            reason = (
                f"the answer would list more than {most} queues (maxAnswerEntries): ask for one"
                " group or topic"
            )
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)

    def _queue(self, group: str, topic: str, queue_id: int) -> OffsetWrapper:
        # In a static topic, the group may be in another broker's stretch of the logic queue.
        least = -1 if topic in self._static_topics else 0
        committed = self._offsets.query(group, topic, queue_id)
        offset = least if committed is None else max(0, committed)
        pulled = self._offsets.query_pull(group, topic, queue_id)
        pulled = max(offset, least if pulled is None else pulled)
        end = self._reads.queue(topic, queue_id).max_offset
        return OffsetWrapper(end, offset, pulled, self._time(topic, queue_id, offset - 1))

    def _time(self, topic: str, queue_id: int, offset: int) -> int:
        """Return the store time of a message, 0 if it does not exist."""
        low, high = self._reads.queue(topic, queue_id)
        if not low <= offset < high:
            return 0
        head = self._reads.head_from(topic, queue_id, offset)
        return head.store_timestamp if head and head.queue_offset == offset else 0

    def _all(self, peer: Peer, request: Command) -> Later:
        return self._runtime.slices.serve(peer, self._all_stats(request))

    def _all_stats(self, request: Command) -> Job[Command]:
        is_order = request.header(BrokerConsumeStatsHeader).is_order
        groups = Members()
        sums, entries = [0, 0], 0
        for name in list(self._state.groups):
            found: list[bytes] = []
            for topic in (yield from self._consumed(name, self._offsets.topics_of(name))):
                if is_order and not topic.order:
                    continue
                entries += topic.write_queue_nums
                self._check_room(entries)
                pairs = Members()
                yield from self._table(name, topic, topic.write_queue_nums, pairs, sums)
                tps = self._state.stats.got_tps(name, topic.topic_name)
                found.append(_encode(pairs, tps))
            groups.append(encode_with_table({name: encode_array(found)}))
            yield
        yield
        body = encode_with_table(
            {
                "brokerAddr": self._runtime.settings.broker_address,
                "consumeStatsList": encode_array(groups),
                "totalDiff": sums[0],
                "totalInflightDiff": sums[1],
            }
        )
        yield
        return response(request, body=body)

    def _time_span(self, peer: Peer, request: Command) -> Later:
        return self._runtime.slices.serve(peer, self._time_spans(request))

    def _time_spans(self, request: Command) -> Job[Command]:
        header = request.header(TopicGroupHeader)
        topic = self._state.topics.get(header.topic)
        if topic is None:
            raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{header.topic}] not exist")
        spans = Members()
        for each in range(topic.write_queue_nums):
            spans.append(encode_body(self._span(header.group, topic, each)))
            yield
        return response(
            request, body=encode_with_table({"consumeTimeSpanSet": encode_array(spans)})
        )

    def _span(self, group: str, topic: Topic, queue_id: int) -> QueueTimeSpan:
        name = topic.topic_name
        low, high = self._reads.queue(name, queue_id)
        first, last = self._time(name, queue_id, low), self._time(name, queue_id, high - 1)
        offset = max(0, self._offsets.query(group, name, queue_id) or 0)
        consumed = self._time(name, queue_id, offset - 1) if offset else first
        waiting = self._time(name, queue_id, max(offset, low))
        now = self._state.store.clock.milliseconds()
        queue = MessageQueue(name, self._runtime.settings.broker_name, queue_id)
        return QueueTimeSpan(queue, first, last, consumed, now - waiting if waiting else 0)

    def _who(self, peer: Peer, request: Command) -> Later:
        return self._runtime.slices.serve(peer, self._groups(request))

    def _groups(self, request: Command) -> Job[Command]:
        topic = request.header(TopicNameHeader).topic
        names = yield from self._state.clients.groups_of(topic)
        for group in self._offsets.groups_of(topic):
            if self._offsets.has_committed(group, topic):
                names.add(group)
            yield
        return response(request, body=encode_body(GroupList((yield from sort(names)))))

    def _topics(self, peer: Peer, request: Command) -> Later:
        return self._runtime.slices.serve(peer, self._topics_of(request))

    def _topics_of(self, request: Command) -> Job[Command]:
        names = yield from sort(self._offsets.topics_of(request.header(GroupNameHeader).group))
        body = TopicList(names, self._runtime.settings.broker_address)
        return response(request, body=encode_body(body))

    def _subscription(self, _peer: Peer, request: Command) -> Command:
        header = request.header(TopicGroupHeader)
        members = self._state.clients.consumers.get(header.group)
        found = members.subscriptions.get(header.topic) if members else None
        body: dict[str, object] = {"group": header.group, "topic": header.topic}
        if found is not None:
            body["subscriptionData"] = found
        return response(request, body=encode_body(body))


def _encode(pairs: Members, tps: float) -> bytes:
    """Return a `ConsumeStats` whose table has these entries."""
    return encode_with_table({"consumeTps": tps, "offsetTable": join_queues(pairs)})
