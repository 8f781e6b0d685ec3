"""PEEK_MESSAGE: return what a pop would return (upstream: `PeekMessageProcessor`)."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from mqlake.broker.pop.in_flight import QueueKey
from mqlake.broker.pop.reading import MOST_BYTES, Reading
from mqlake.broker.pop.requests import CheckTopic, check_count
from mqlake.broker.pop.retried import Retried
from mqlake.broker.pop.rounds import Round, Rounds
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.formats.config.topics import PERM_READ
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.pop import PeekHeader, PopAnswerHeader
from mqlake.protocol.naming import RETRY_PREFIX
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Answer
from mqlake.remoting.slices import Job, run_at_once
from mqlake.store.results import Status

_WRONG_OFFSET = (Status.OFFSET_TOO_SMALL, Status.OFFSET_OVERFLOW_BADLY)


class Peeking:
    """Answers with messages without popping them."""

    def __init__(
        self,
        state: BrokerState,
        runtime: BrokerRuntime,
        reading: Reading,
        rounds: Rounds,
        check_topic: CheckTopic,
    ) -> None:
        self._state, self._runtime, self._reading = state, runtime, reading
        self._rounds, self._check_topic = rounds, check_topic
        self._retried = Retried(state, runtime)

    def peek(self, peer: Peer, request: Command) -> Answer | Coroutine[Any, Any, Answer]:
        """Answer with the messages that a group would pop next."""
        header = request.header(PeekHeader)
        settings = self._runtime.settings
        who = f"the broker[{settings.broker_ip1}] peeking message"
        if not settings.broker_permission & PERM_READ:
            raise RemotingError(ResponseCode.NO_PERMISSION, f"{who} is forbidden")
        check_count(header.max_msg_nums, who)
        group = header.consumer_group
        topic = self._check_topic(header.topic, group, header.queue_id, peer)
        round_ = self._rounds.next(topic, header.queue_id, group, is_ordered=False)
        job = self._peek(request, header, round_)
        if round_.is_short:
            return run_at_once(job)
        return self._runtime.slices.serve(peer, job, size=len(request.body))

    def _peek(self, request: Command, header: PeekHeader, round_: Round) -> Job[Answer]:
        found: list[memoryview] = []
        rest = size = 0
        for name, queue_id in round_.queues():
            key = QueueKey(name, header.consumer_group, queue_id)
            offset, count = self._reading.unread(key)
            rest += count
            room = MOST_BYTES - size
            if len(found) < header.max_msg_nums and room > 0:
                more = self._read(header, key, offset, header.max_msg_nums - len(found), room)
                if not found or sum(map(len, more)) <= room:
                    found += more
                    size = sum(map(len, found))
            yield
        code = ResponseCode.SUCCESS if found else ResponseCode.PULL_NOT_FOUND
        fields = PopAnswerHeader(pop_time=0, invisible_time=0, revive_qid=0, rest_num=rest)
        remark = "FOUND" if found else "NO_MESSAGE_IN_QUEUE"
        if found:
            self._state.stats.got(header.consumer_group, header.topic, len(found), size)
        return response(request, code, fields, b"".join(found), remark)

    def _read(
        self, header: PeekHeader, key: QueueKey, offset: int, most: int, room: int
    ) -> list[memoryview]:
        get = self._state.store.reads.get
        result = get(key.topic, key.queue_id, offset, most, max_bytes=room)
        if result.status in _WRONG_OFFSET and result.next_offset != offset:
            result = get(key.topic, key.queue_id, result.next_offset, most, max_bytes=room)
        if not key.topic.startswith(RETRY_PREFIX):
            return list(result.raw)
        return [
            data
            for record, data in zip(result.records, result.raw, strict=True)
            if self._retried.is_for(record, header.topic, key.group)
        ]
