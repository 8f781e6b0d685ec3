"""POP_MESSAGE, NOTIFICATION, POLLING_INFO.

Upstream: `PopMessageProcessor`, `NotificationProcessor`, `PollingInfoProcessor`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mqlake.broker.filter.sql92.tokens import ExpressionError
from mqlake.broker.filter.subscriptions import Choice, choice
from mqlake.broker.naming import RETRY_PREFIX
from mqlake.broker.parts import Parts
from mqlake.broker.pop.in_flight import QueueKey
from mqlake.broker.pop.ordered import Ordered
from mqlake.broker.pop.reading import Reading, Taken, Wanted
from mqlake.broker.pop.retry_topics import retry_topic, retry_topic_fault, retry_topics
from mqlake.broker.pop.waiting import ALL_QUEUES, Waiting
from mqlake.formats.config.topics import PERM_READ, Topic
from mqlake.remoting.codes import ResponseCode
from mqlake.remoting.command import Command, response
from mqlake.remoting.connection import Peer
from mqlake.remoting.errors import RemotingError
from mqlake.remoting.headers.pop import (
    NotificationAnswerHeader,
    NotificationHeader,
    PollingInfoAnswerHeader,
    PollingInfoHeader,
    PopAnswerHeader,
    PopHeader,
)

_MOST_MESSAGES = 32
_LATE = 500
"""Milliseconds after the end of its poll time from which a pop is not looked at."""
_RETRY_FIRST = 5
"""One of so many pops looks into the retry topic first, the others last."""

_INVALID = ResponseCode.INVALID_PARAMETER
_FORBIDDEN = ResponseCode.NO_PERMISSION


class PopRequests:
    """Answers what asks for messages to pop."""

    def __init__(self, parts: Parts, reading: Reading, ordered: Ordered, waiting: Waiting) -> None:
        self._parts, self._reading = parts, reading
        self._ordered, self._waiting = ordered, waiting
        self._now = parts.store.core.clock.milliseconds
        self._turn = 0

    # POP_MESSAGE

    def pop(self, peer: Peer, request: Command) -> Command | None:
        """Answer with messages, or let the request wait for some."""
        header = request.header(PopHeader)
        topic, wanted = self._check(header, peer)
        left = header.poll_time - (self._now() - header.born_time if header.born_time else 0)
        if left < -_LATE:
            nothing = Taken(self._now(), 0)
            return self._answer(request, header, nothing, ResponseCode.POLLING_TIMEOUT)
        taken = self._take(header, topic, wanted)
        if taken.bodies:
            return self._answer(request, header, taken)
        name, group, queue_id = header.topic, header.consumer_group, header.queue_id
        if header.poll_time > 0 and self._waiting.is_full(name, group, queue_id):
            return self._answer(request, header, taken, ResponseCode.POLLING_FULL)
        if min(left, header.poll_time) <= 0:
            return self._answer(request, header, taken, ResponseCode.POLLING_TIMEOUT)
        peer.drop_body(request)
        waits = _WaitingPop(self, peer, request.bare(), header)
        self._waiting.add(name, group, queue_id, waits, min(left, header.poll_time))
        return None

    def try_again(self, peer: Peer, request: Command, header: PopHeader) -> bool:
        """Answer a request that waits if there is something now; say whether it was answered."""
        try:
            topic, wanted = self._check(header, peer)
            taken = self._take(header, topic, wanted)
        except RemotingError as error:
            peer.answer(request, response(request, error.code, remark=error.remark))
            return True
        if taken.bodies:
            peer.answer(request, self._answer(request, header, taken))
        return bool(taken.bodies)

    def give_up(self, peer: Peer, request: Command, header: PopHeader) -> None:
        """Answer a request that has waited for long enough."""
        taken = Taken(self._now(), 0)
        code = ResponseCode.POLLING_TIMEOUT
        peer.answer(request, self._answer(request, header, taken, code))

    def _answer(
        self,
        request: Command,
        header: PopHeader,
        taken: Taken,
        code: ResponseCode = ResponseCode.SUCCESS,
    ) -> Command:
        is_found, info = code == ResponseCode.SUCCESS, taken.info
        if is_found and taken.rest:
            self._waiting.wake(header.topic, header.consumer_group, header.queue_id)
        fields = PopAnswerHeader(
            pop_time=taken.pop_time,
            invisible_time=header.invisible_time,
            revive_qid=taken.revive_queue_id,
            rest_num=taken.rest,
            start_offset_info=info.start_offset_info,
            msg_offset_info=info.msg_offset_info,
            order_count_info=info.order_count_info if header.order else None,
        )
        remark = "FOUND" if is_found else "NO_MESSAGE_IN_QUEUE"
        return response(request, code, fields, b"".join(taken.bodies), remark)

    def _take(self, header: PopHeader, topic: Topic, wanted: Wanted) -> Taken:
        taken = self._reading.start(wanted)
        for name, queue_id in self._queues(topic, header.queue_id, wanted.group, wanted.is_ordered):
            self._reading.take(wanted, name, queue_id, taken)
        if taken.refusal is not None and not taken.bodies:
            raise taken.refusal
        if taken.free_at is not None and not taken.bodies:
            self._waiting.wake_at(taken.free_at, header.topic, wanted.group, header.queue_id)
        return taken

    def _queues(
        self,
        topic: Topic,
        queue_id: int,
        group: str,
        is_ordered: bool,
    ) -> Iterator[tuple[str, int]]:
        """Yield the queues to look into, each time beginning with another one."""
        self._turn += 1
        is_v2 = self._parts.settings.enable_retry_topic_v2
        names = [] if is_ordered else retry_topics(topic.topic_name, group, is_v2=is_v2)
        found = (self._parts.topics.get(name) for name in names)
        retries = [queue for retry in found if retry for queue in self._all_queues(retry)]
        is_retry_first = self._turn % _RETRY_FIRST == 0
        if is_retry_first:
            yield from retries
        if queue_id >= 0:
            yield topic.topic_name, queue_id
        else:
            yield from self._all_queues(topic)
        if not is_retry_first:
            yield from retries

    def _all_queues(self, topic: Topic) -> Iterator[tuple[str, int]]:
        count = topic.read_queue_nums
        return ((topic.topic_name, (self._turn + number) % count) for number in range(count))

    # Checks

    def _check(self, header: PopHeader, peer: Peer) -> tuple[Topic, Wanted]:
        settings = self._parts.settings
        who = f"the broker[{settings.broker_ip1}] pop message"
        if not settings.broker_permission & PERM_READ:
            raise RemotingError(_FORBIDDEN, f"{who} is forbidden")
        if header.max_msg_nums > _MOST_MESSAGES:
            raise RemotingError(_INVALID, f"{who}'s num is greater than {_MOST_MESSAGES}")
        if not settings.timer_wheel_enable:
            reason = f"{who} is forbidden because timerWheelEnable is false"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        topic = self._topic(header.topic, header.consumer_group, header.queue_id, peer)
        self._check_again(header)
        wanted = Wanted(
            header.topic,
            header.consumer_group,
            header.max_msg_nums,
            header.invisible_time,
            header.init_mode,
            self._choice(header),
            bool(header.order),
            header.attempt_id,
        )
        return topic, wanted

    def _check_again(self, header: PopHeader) -> None:
        """Check that messages that are not acknowledged can come again."""
        settings = self._parts.settings
        longest = settings.timer_max_delay_sec * 1000
        if not 0 <= header.invisible_time <= longest:
            reason = (
                f"invisibleTime {header.invisible_time} is not within 0 and {longest} ms"
                " (timerMaxDelaySec)"
            )
            raise RemotingError(_INVALID, reason)
        if header.order or header.topic.startswith(RETRY_PREFIX):
            return
        is_v2 = settings.enable_retry_topic_v2
        name = retry_topic(header.topic, header.consumer_group, is_v2=is_v2)
        if (fault := retry_topic_fault(name, self._parts)) is not None:
            raise RemotingError(_INVALID, fault)

    def _topic(self, name: str, group_name: str, queue_id: int, peer: Peer) -> Topic:
        topic = self._parts.topics.get(name)
        if topic is None:
            reason = f"topic[{name}] not exist, apply first please!"
            raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, reason)
        if not topic.perm & PERM_READ:
            raise RemotingError(_FORBIDDEN, f"the topic[{name}] peeking message is forbidden")
        if not ALL_QUEUES <= queue_id < topic.read_queue_nums:
            reason = (
                f"queueId[{queue_id}] is illegal, topic:[{name}] topicConfig.readQueueNums:"
                f"[{topic.read_queue_nums}] consumer:[{peer.address}]"
            )
            raise RemotingError(_INVALID, reason)
        group = self._parts.groups.get_or_make(group_name)
        if group is None:
            reason = f"subscription group [{group_name}] does not exist"
            raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, reason)
        if not group.consume_enable:
            raise RemotingError(_FORBIDDEN, f"subscription group no permission, {group_name}")
        return topic

    def _choice(self, header: PopHeader) -> Choice:
        try:
            return (
                choice(self._parts.settings, header.exp, header.exp_type)
                if header.exp
                else Choice()
            )
        except ExpressionError as error:
            reason = f"parse the consumer's subscription failed: {error}"
            raise RemotingError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, reason) from None

    # NOTIFICATION, POLLING_INFO

    def notify(self, peer: Peer, request: Command) -> Command | None:
        """Answer whether there is something to pop, once there is."""
        header = request.header(NotificationHeader)
        topic = self._topic(header.topic, header.consumer_group, header.queue_id, peer)
        if self.has_message(header, topic):
            return response(request, header=NotificationAnswerHeader(has_msg=True))
        left = header.poll_time - (self._now() - header.born_time if header.born_time else 0)
        name, group, queue_id = header.topic, header.consumer_group, header.queue_id
        is_full = self._waiting.is_full(name, group, queue_id)
        if is_full or min(left, header.poll_time) <= 0:
            fields = NotificationAnswerHeader(has_msg=False, polling_full=is_full)
            return response(request, header=fields)
        peer.drop_body(request)
        waits = _WaitingNotification(self, peer, request.bare(), header)
        self._waiting.add(name, group, queue_id, waits, min(left, header.poll_time))
        return None

    def has_message(self, header: NotificationHeader, topic: Topic | None) -> bool:
        """Say whether there is something to pop."""
        group, is_ordered = header.consumer_group, bool(header.order)
        if topic is None:
            return False
        for name, queue_id in self._queues(topic, header.queue_id, group, is_ordered):
            key = QueueKey(name, group, queue_id)
            is_blocked = is_ordered and self._ordered.is_blocked(key, header.attempt_id)
            if not is_blocked and self._reading.rest(key):
                return True
        return False

    def is_there(self, header: NotificationHeader) -> bool:
        """Say whether there is something to pop, for a request that waits."""
        return self.has_message(header, self._parts.topics.get(header.topic))

    def polling_info(self, peer: Peer, request: Command) -> Command:
        """Answer how many requests wait for a queue."""
        header = request.header(PollingInfoHeader)
        self._topic(header.topic, header.consumer_group, header.queue_id, peer)
        count = self._waiting.count(header.topic, header.consumer_group, header.queue_id)
        return response(request, header=PollingInfoAnswerHeader(polling_num=count))


class _WaitingPop:
    def __init__(
        self, family: PopRequests, peer: Peer, request: Command, header: PopHeader
    ) -> None:
        self.peer, self._family = peer, family
        self._request, self._header = request, header

    def try_again(self) -> bool:
        return self._family.try_again(self.peer, self._request, self._header)

    def give_up(self) -> None:
        self._family.give_up(self.peer, self._request, self._header)


class _WaitingNotification:
    def __init__(
        self, family: PopRequests, peer: Peer, request: Command, header: NotificationHeader
    ) -> None:
        self.peer, self._family = peer, family
        self._request, self._header = request, header

    def try_again(self) -> bool:
        is_there = self._family.is_there(self._header)
        if is_there:
            self._answer(has_msg=True)
        return is_there

    def give_up(self) -> None:
        self._answer(has_msg=False)

    def _answer(self, *, has_msg: bool) -> None:
        fields = NotificationAnswerHeader(has_msg=has_msg)
        self.peer.answer(self._request, response(self._request, header=fields))
