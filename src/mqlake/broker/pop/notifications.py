"""NOTIFICATION, POLLING_INFO.

Upstream: `NotificationProcessor`, `PollingInfoProcessor`.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import msgspec

from mqlake.broker.pop.in_flight import QueueKey
from mqlake.broker.pop.ordered import Ordered, check_attempt_id
from mqlake.broker.pop.reading import Reading
from mqlake.broker.pop.requests import CheckTopic
from mqlake.broker.pop.rounds import Round, Rounds
from mqlake.broker.pop.waiting import WaitingPops
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.formats.config.topics import Topic
from mqlake.protocol.command import Command, response
from mqlake.protocol.headers.pop import (
    NotificationAnswerHeader,
    NotificationHeader,
    PollingInfoAnswerHeader,
    PollingInfoHeader,
)
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Answer
from mqlake.remoting.slices import Job, run_at_once


class Notifications:
    """Tells clients whether there is something to pop, and how many requests wait for it."""

    def __init__(
        self,
        *,
        state: BrokerState,
        runtime: BrokerRuntime,
        reading: Reading,
        ordered: Ordered,
        waiting: WaitingPops,
        rounds: Rounds,
        check_topic: CheckTopic,
    ) -> None:
        self._state, self._runtime = state, runtime
        self._reading, self._ordered = reading, ordered
        self._waiting, self._rounds, self._check_topic = waiting, rounds, check_topic

    def notify(self, peer: Peer, request: Command) -> Answer | Coroutine[Any, Any, Answer]:
        """Answer whether there is something to pop, as soon as there is."""
        header = request.header(NotificationHeader)
        check_attempt_id(header.attempt_id)
        topic = self._check_topic(header.topic, header.consumer_group, header.queue_id, peer)
        round_ = self._round(header, topic)
        job = self._notify(peer, request, header, round_)
        if round_.is_short:
            return run_at_once(job)
        return self._runtime.slices.serve(peer, job, size=len(request.body))

    def _notify(
        self, peer: Peer, request: Command, header: NotificationHeader, round_: Round
    ) -> Job[Answer]:
        news = self._waiting.news
        if (yield from self._has_message(header, round_)):
            return response(request, header=NotificationAnswerHeader(has_msg=True))
        left = self._state.client_clock.time_left(header.poll_time, header.born_time)
        name, group, queue_id = header.topic, header.consumer_group, header.queue_id
        is_full = self._waiting.is_full(name, group, queue_id, peer)
        if is_full or min(left, header.poll_time) <= 0:
            fields = NotificationAnswerHeader(has_msg=False, polling_full=is_full)
            return response(request, header=fields)
        peer.drop_body(request)
        peer.suspend(request)
        waits = _WaitingNotification(self, peer, request.bare(), header)
        self._waiting.add(name, group, queue_id, waits, min(left, header.poll_time))
        if self._waiting.news != news:
            self._waiting.wake(name, group, queue_id)
        return None

    def _round(self, header: NotificationHeader, topic: Topic) -> Round:
        group, is_ordered = header.consumer_group, bool(header.order)
        return self._rounds.next(topic, header.queue_id, group, is_ordered=is_ordered)

    def _has_message(self, header: NotificationHeader, round_: Round) -> Job[bool]:
        for name, queue_id in round_.queues():
            key = QueueKey(name, header.consumer_group, queue_id)
            is_blocked = header.order and self._ordered.is_blocked(key, header.attempt_id)
            if not is_blocked and self._reading.unread(key)[1]:
                return True
            yield
        return False

    def has_message(self, header: NotificationHeader) -> Job[bool]:
        """Return whether there is something to pop, for a request that waits."""
        topic = self._state.topics.get(header.topic)
        if topic is None:
            return False
        return (yield from self._has_message(header, self._round(header, topic)))

    def polling_info(self, peer: Peer, request: Command) -> Command:
        """Answer how many requests wait for a queue."""
        header = request.header(PollingInfoHeader)
        self._check_topic(header.topic, header.consumer_group, header.queue_id, peer)
        count = self._waiting.count(header.topic, header.consumer_group, header.queue_id)
        return response(request, header=PollingInfoAnswerHeader(polling_num=count))


class _WaitingNotification:
    def __init__(
        self, family: Notifications, peer: Peer, request: Command, header: NotificationHeader
    ) -> None:
        self.peer, self._family = peer, family
        self._request, self.code = request, request.code
        # The other header fields are not kept while the request waits.
        is_needed = header.attempt_id is None or bool(header.order)
        self._header = header if is_needed else msgspec.structs.replace(header, attempt_id=None)

    def try_again(self) -> Job[bool]:
        has_message = yield from self._family.has_message(self._header)
        if has_message:
            self._answer(has_msg=True)
        return has_message

    def give_up(self) -> None:
        self._answer(has_msg=False)

    def _answer(self, *, has_msg: bool) -> None:
        fields = NotificationAnswerHeader(has_msg=has_msg)
        self.peer.answer(self._request, response(self._request, header=fields))
