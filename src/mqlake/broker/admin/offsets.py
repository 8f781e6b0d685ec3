"""Let groups stand elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from mqlake.broker.parts import Parts
from mqlake.remoting.bodies.message_queue import MessageQueue
from mqlake.remoting.bodies.stats import ResetOffsets
from mqlake.remoting.body import encode_unquoted
from mqlake.remoting.codes import RequestCode, ResponseCode
from mqlake.remoting.command import Command, response
from mqlake.remoting.connection import Peer
from mqlake.remoting.errors import RemotingError
from mqlake.remoting.headers.admin import (
    CloneOffsetHeader,
    CorrectionOffsetHeader,
    ResetOffsetHeader,
)
from mqlake.remoting.server import Handler

_NO_LIMIT = 2**63 - 1


class OffsetAdmin:
    """Answers requests that change where groups stand."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._offsets = parts.store.core.config.consumer_offsets

    def handlers(self) -> Mapping[int, Handler]:
        """Return what answers each request code."""
        return {
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: self._reset,
            RequestCode.CLONE_GROUP_OFFSET: self._clone,
            RequestCode.QUERY_CORRECTION_OFFSET: self._correction,
        }

    def _reset(self, _peer: Peer, request: Command) -> Command:
        """Set offsets that the group's consumers take with their next pull."""
        header = request.header(ResetOffsetHeader)
        topic = self._parts.topics.get(header.topic)
        if topic is None:
            reason = f"Topic {header.topic} does not exist"
            raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, reason)
        if header.group not in self._parts.groups:
            reason = f"Group {header.group} does not exist"
            raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, reason)
        one = header.queue_id >= 0
        queues = [header.queue_id] if one else list(range(topic.read_queue_nums))
        if not queues:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, "No queues to reset.")
        targets = {each: self._target(header, each) for each in queues}
        for queue_id, offset in targets.items():
            self._offsets.reset(header.group, header.topic, queue_id, offset)
        broker = self._parts.settings.broker_name
        table = {MessageQueue(header.topic, broker, each): at for each, at in targets.items()}
        return response(request, body=ResetOffsets(table).encode())

    def _target(self, header: ResetOffsetHeader, queue_id: int) -> int:
        reads = self._parts.store.core.reads
        low, high = reads.queue(header.topic, queue_id)
        if header.queue_id >= 0 and header.offset is not None and header.offset != -1:
            if not low <= header.offset <= high + 1:
                reason = f"Target offset {header.offset} not in consume queue range [{low}-{high}]"
                raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
            return header.offset
        if header.timestamp < 0:
            return high
        return reads.offset_by_time(header.topic, queue_id, header.timestamp)

    def _clone(self, _peer: Peer, request: Command) -> Command:
        header = request.header(CloneOffsetHeader)
        topics = [header.topic] if header.topic else self._offsets.topics_of(header.src_group)
        members = self._parts.clients.consumers.get(header.src_group)
        for topic in topics:
            is_read = header.offline or not members or topic in members.subscriptions
            if topic in self._parts.topics and is_read:
                self._offsets.copy(header.src_group, header.dest_group, topic)
        return response(request)

    def _correction(self, _peer: Peer, request: Command) -> Command:
        """Say where the slowest of a topic's groups stands, no limit where that is this one."""
        header = request.header(CorrectionOffsetHeader)
        ignored = set((header.filter_groups or "").split(","))
        slowest: dict[int, int] = {}
        for group in self._offsets.groups_of(header.topic) - ignored:
            for queue_id, offset in self._offsets.query_topic(group, header.topic).items():
                slowest[queue_id] = min(offset, slowest.get(queue_id, _NO_LIMIT))
        own = self._offsets.query_topic(header.compare_group, header.topic)
        for queue_id, offset in own.items():
            if slowest.get(queue_id, _NO_LIMIT) > offset:
                slowest[queue_id] = _NO_LIMIT
        return response(request, body=encode_unquoted({"correctionOffsets": slowest}))
