"""Reset, copy and limit the offsets of groups."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Sequence
from typing import Any

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.queue_tables import encode_queue, encode_with_table, join_queues
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import (
    CloneOffsetHeader,
    CorrectionOffsetHeader,
    ResetOffsetHeader,
)
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Answer, Route
from mqlake.remoting.slices import Job

Later = Answer | Coroutine[Any, Any, Answer]
"""An answer, which is returned at once if it is short."""

_NO_LIMIT = 2**63 - 1


class OffsetAdmin:
    """Answers requests that change offsets of groups."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime
        self._offsets = state.store.config.consumer_offsets

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, self._reset, Permission.UPDATE),
            Route(RequestCode.CLONE_GROUP_OFFSET, self._clone, Permission.UPDATE),
            Route(RequestCode.QUERY_CORRECTION_OFFSET, self._correction, Permission.READ),
        )

    def _reset(self, peer: Peer, request: Command) -> Later:
        return self._runtime.slices.serve(peer, self._reset_all(request), is_kept=True)

    def _reset_all(self, request: Command) -> Job[Command]:
        """Set offsets that the group's consumers apply with their next pull."""
        header = request.header(ResetOffsetHeader)
        topic = self._state.topics.get(header.topic)
        if topic is None:
            reason = f"Topic {header.topic} does not exist"
            raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, reason)
        if header.group not in self._state.groups:
            reason = f"Group {header.group} does not exist"
            raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, reason)
        one = header.queue_id >= 0
        count = self._state.topics.queues(header.topic)
        if one and header.queue_id >= count:
            reason = f"Topic {header.topic} has no queue {header.queue_id}"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        queues = [header.queue_id] if one else list(range(topic.read_queue_nums))
        if not queues:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, "No queues to reset.")
        lives, targets = self._lives(header.topic, header.group), list[int]()
        for each in queues:
            targets.append(self._target(header, each))
            yield
        self._check_all(header.group, header.topic, queues)
        broker, pairs = self._runtime.settings.broker_name, list[bytes]()
        for each, at in zip(queues, targets, strict=True):
            if self._lives(header.topic, header.group) != lives:
                reason = f"topic {header.topic} or group {header.group} was deleted meanwhile"
                raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
            self._check_one(header.group, header.topic, each)
            self._offsets.reset(header.group, header.topic, each, at)
            pairs.append(encode_queue(MessageQueue(header.topic, broker, each), at))
            yield
        return response(request, body=encode_with_table({"offsetTable": join_queues(pairs)}))

    def _target(self, header: ResetOffsetHeader, queue_id: int) -> int:
        reads = self._state.store.reads
        low, high = reads.queue(header.topic, queue_id)
        if header.queue_id >= 0 and header.offset is not None and header.offset != -1:
            if not low <= header.offset <= high + 1:
                reason = f"Target offset {header.offset} not in consume queue range [{low}-{high}]"
                raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
            return header.offset
        if header.timestamp < 0:
            return high
        return reads.offset_by_time(header.topic, queue_id, header.timestamp)

    def _clone(self, peer: Peer, request: Command) -> Later:
        return self._runtime.slices.serve(peer, self._clone_all(request), is_kept=True)

    def _clone_all(self, request: Command) -> Job[Command]:
        header = request.header(CloneOffsetHeader)
        topics = [header.topic] if header.topic else self._offsets.topics_of(header.src_group)
        members = self._state.clients.consumers.get(header.src_group)
        for topic in topics:
            yield
            is_read = header.offline or not members or topic in members.subscriptions
            if topic not in self._state.topics or not is_read:
                continue
            lives = self._lives(topic, header.dest_group)
            found = self._offsets.query_topic(header.src_group, topic)
            self._check_all(header.dest_group, topic, found)
            for queue_id, offset in found.items():
                if self._lives(topic, header.dest_group) != lives:
                    break  # These are offsets of a topic, or for a group, that was deleted.
                self._check_one(header.dest_group, topic, queue_id)
                self._offsets.commit(header.dest_group, topic, queue_id, offset)
                yield
        return response(request)

    def _lives(self, topic: str, group: str) -> tuple[object, ...]:
        """Return a value that changes if a topic or a group is deleted: others are served between
        two steps, and offsets that come after a deletion would hide messages of a new topic.
        """
        ended = self._state.store.incarnations
        return (
            topic in self._state.topics,
            group in self._state.groups,
            ended.before(topic),
            ended.group_before(group),
        )

    def _check_all(self, group: str, topic: str, queue_ids: Iterable[int]) -> None:
        """Refuse offsets that would exceed the limit, before any of them is set."""
        known = self._offsets.query_topic(group, topic)
        if more := sum(queue_id not in known for queue_id in queue_ids):
            self._state.offset_room.check(group, topic, more)

    def _check_one(self, group: str, topic: str, queue_id: int) -> None:
        """Check again: others have been served meanwhile."""
        if not self._offsets.has(group, topic, queue_id):
            self._state.offset_room.check(group, topic)

    def _correction(self, peer: Peer, request: Command) -> Later:
        return self._runtime.slices.serve(peer, self._corrections(request))

    def _corrections(self, request: Command) -> Job[Command]:
        """Return the offset of a topic's slowest group; no limit if it is this group."""
        header = request.header(CorrectionOffsetHeader)
        ignored = set((header.filter_groups or "").split(","))
        slowest: dict[int, int] = {}
        for group in self._offsets.groups_of(header.topic) - ignored:
            for queue_id, offset in self._offsets.query_topic(group, header.topic).items():
                slowest[queue_id] = min(offset, slowest.get(queue_id, _NO_LIMIT))
                yield
        own = self._offsets.query_topic(header.compare_group, header.topic)
        for queue_id, offset in own.items():
            if slowest.get(queue_id, _NO_LIMIT) > offset:
                slowest[queue_id] = _NO_LIMIT
            yield
        texts: list[bytes] = []
        for queue_id, offset in slowest.items():
            texts.append(b"%d:%d" % (queue_id, offset))
            yield
        body = b"".join((b'{"correctionOffsets":{', b",".join(texts), b"}}"))
        return response(request, body=body)
