"""POP_MESSAGE (upstream: `PopMessageProcessor`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

import msgspec

from mqlake.broker.filter.sql92.tokens import ExpressionError
from mqlake.broker.filter.subscriptions import Choice, choice, is_costly
from mqlake.broker.pop.ordered import check_attempt_id
from mqlake.broker.pop.reading import PopRead, Reading, Taken
from mqlake.broker.pop.rounds import ALL_QUEUES, Round, Rounds
from mqlake.broker.pop.waiting import WaitingPops
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.errors import DiskError
from mqlake.formats.config.topics import PERM_READ, Topic
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.pop import PopAnswerHeader, PopHeader
from mqlake.protocol.naming import RETRY_PREFIX
from mqlake.protocol.retry_topics import retry_topic, retry_topic_fault
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Answer
from mqlake.remoting.slices import Job, run_at_once

_MOST_MESSAGES = 32
_LATE = 500
"""Milliseconds after the end of its poll time from which a pop is not served."""

_INVALID = ResponseCode.INVALID_PARAMETER
_FORBIDDEN = ResponseCode.NO_PERMISSION

_log = logging.getLogger(__name__)

CheckTopic = Callable[[str, str, int, Peer], Topic]
"""Returns the topic of that name if a group may pop one of its queues; raises RemotingError."""


class _PopResult(NamedTuple):
    """The answer to a pop, and what it contains."""

    answer: Answer
    taken: Taken


def check_count(messages: int, who: str) -> None:
    """Refuse a request for more messages than one answer can have.

    Raises:
        RemotingError: the request asks for too many.
    """
    if messages > _MOST_MESSAGES:
        raise RemotingError(_INVALID, f"{who}'s num is greater than {_MOST_MESSAGES}")


class PopRequests:
    """Serves requests to pop messages."""

    def __init__(
        self,
        state: BrokerState,
        runtime: BrokerRuntime,
        reading: Reading,
        waiting: WaitingPops,
        rounds: Rounds,
    ) -> None:
        self._state, self._runtime, self._reading = state, runtime, reading
        self._waiting, self._rounds = waiting, rounds
        self._now = state.store.clock.milliseconds

    # POP_MESSAGE

    def pop(self, peer: Peer, request: Command) -> Answer | Coroutine[Any, Any, Answer]:
        """Answer with messages, or let the request wait for some."""
        header = request.header(PopHeader)
        if is_costly(header.exp, header.exp_type):
            return self._sliced(peer, request, header, self._parse_and_pop(peer, request, header))
        topic, wanted = self._check(header, peer)
        if self._left(header) < -_LATE:
            return self._nothing(request, header)
        round_ = self._round(header, topic, wanted)
        job = self._pop(peer, request, header, wanted, round_)
        if round_.is_short and wanted.choice.condition is None:
            return self._sent(peer, header, run_at_once(job))
        return self._sliced(peer, request, header, job)

    def _sliced(
        self, peer: Peer, request: Command, header: PopHeader, job: Job[_PopResult]
    ) -> Answer | Coroutine[Any, Any, Answer]:
        found = self._runtime.slices.serve(peer, job, size=len(request.body))
        if isinstance(found, _PopResult):
            return self._sent(peer, header, found)
        return self._sent_later(peer, header, found)

    async def _sent_later(
        self, peer: Peer, header: PopHeader, job: Coroutine[Any, Any, _PopResult | None]
    ) -> Answer:
        popped = await job  # None if the connection was closed meanwhile.
        return None if popped is None else self._sent(peer, header, popped)

    def _sent(self, peer: Peer, header: PopHeader, popped: _PopResult) -> Answer:
        """Return an answer that is sent now; if nobody receives it, give its messages back."""
        if peer.is_closed:
            self._give_back(header, popped.taken)
        else:
            popped.taken.note_sent()
        return popped.answer

    def _give_back(self, header: PopHeader, taken: Taken) -> None:
        self._reading.give_back(taken)
        if taken.undos:
            self._waiting.wake(header.topic, header.consumer_group, header.queue_id)

    def _parse_and_pop(self, peer: Peer, request: Command, header: PopHeader) -> Job[_PopResult]:
        topic, wanted = self._check(header, peer)
        yield
        if self._left(header) < -_LATE:
            return _PopResult(self._nothing(request, header), Taken(self._now(), 0))
        round_ = self._round(header, topic, wanted)
        return (yield from self._pop(peer, request, header, wanted, round_))

    def _pop(
        self, peer: Peer, request: Command, header: PopHeader, wanted: PopRead, round_: Round
    ) -> Job[_PopResult]:
        news = self._waiting.news
        taken = yield from self._take(header, wanted, round_)
        return _PopResult(self._answer_or_wait(peer, request, header, taken, news), taken)

    def _answer_or_wait(
        self, peer: Peer, request: Command, header: PopHeader, taken: Taken, news: tuple[int, int]
    ) -> Answer:
        """Return the answer; None if the request waits for messages.

        Args:
            news: of `WaitingPops`, before the queues were read.
        """
        if taken.bodies:
            return self._answer(request, header, taken)
        name, group, queue_id = header.topic, header.consumer_group, header.queue_id
        if header.poll_time > 0 and self._waiting.is_full(name, group, queue_id, peer):
            return self._answer(request, header, taken, ResponseCode.POLLING_FULL)
        self._state.refusals.check_code(request.code)
        left = min(self._left(header), header.poll_time)
        if left <= 0:
            return self._answer(request, header, taken, ResponseCode.POLLING_TIMEOUT)
        peer.drop_body(request)
        peer.suspend(request)
        waits = _WaitingPop(self, peer, request.bare(), header)
        self._waiting.add(name, group, queue_id, waits, left)
        if self._waiting.news != news:
            # Messages arrived meanwhile, perhaps in a queue that was already read.
            self._waiting.wake(name, group, queue_id)
        return None

    def _left(self, header: PopHeader) -> int:
        return self._state.client_clock.time_left(header.poll_time, header.born_time)

    def try_again(self, peer: Peer, request: Command, header: PopHeader) -> Job[bool]:
        """Answer a waiting request if there is something now; return whether it was answered."""
        try:
            self._state.refusals.check_code(request.code)
            topic, wanted = self._check(header, peer)
            taken = yield from self._take(header, wanted, self._round(header, topic, wanted))
        except RemotingError as error:
            peer.answer(request, response(request, error.code, remark=error.remark))
            return True
        if not taken.bodies:
            return False
        answer = self._answer(request, header, taken)
        self._sent(peer, header, _PopResult(answer, taken))
        peer.answer(request, answer)
        return True

    def give_up(self, peer: Peer, request: Command, header: PopHeader) -> None:
        """Answer a request whose time is up, or which this broker does not serve any more."""
        if (refusal := self._state.refusals.of(request.code)) is not None:
            peer.answer(request, response(request, refusal.code, remark=refusal.remark))
        else:
            peer.answer(request, self._nothing(request, header))

    def _nothing(self, request: Command, header: PopHeader) -> Command:
        nothing = Taken(self._now(), 0)
        return self._answer(request, header, nothing, ResponseCode.POLLING_TIMEOUT)

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

    def _round(self, header: PopHeader, topic: Topic, wanted: PopRead) -> Round:
        queue_id, is_ordered = header.queue_id, wanted.is_ordered
        return self._rounds.next(topic, queue_id, wanted.group, is_ordered=is_ordered)

    def _take(self, header: PopHeader, wanted: PopRead, round_: Round) -> Job[Taken]:
        self._state.store.dispatching.catch_up()  # What was acknowledged before can be popped.
        taken = self._reading.start(wanted)
        try:
            yield from self._read(wanted, round_, taken)
        except BaseException:  # The connection may be closed meanwhile, which ends the job.
            self._give_back(header, taken)
            raise
        if taken.refusal is not None and not taken.bodies:
            raise taken.refusal
        if taken.free_at is not None and not taken.bodies:
            self._waiting.wake_at(taken.free_at, header.topic, wanted.group, header.queue_id)
        return taken

    def _read(self, wanted: PopRead, round_: Round, taken: Taken) -> Job[None]:
        for name, queue_id in round_.queues():
            try:
                yield from self._reading.take(wanted, name, queue_id, taken)
            except DiskError as error:
                if not taken.bodies:
                    raise
                # These messages are popped already: if an error were the answer, the group would
                # not get them until their invisible time is over.
                _log.warning(
                    "%s, queue %d: not read for group %.255s, whose pop returns the %d messages "
                    "read before: %s",
                    name,
                    queue_id,
                    wanted.group,
                    len(taken.bodies),
                    error,
                )
                break
            yield

    # Checks

    def _check(self, header: PopHeader, peer: Peer) -> tuple[Topic, PopRead]:
        settings = self._runtime.settings
        who = f"the broker[{settings.broker_ip1}] pop message"
        if not settings.broker_permission & PERM_READ:
            raise RemotingError(_FORBIDDEN, f"{who} is forbidden")
        check_count(header.max_msg_nums, who)
        check_attempt_id(header.attempt_id)
        if not settings.timer_wheel_enable:
            reason = f"{who} is forbidden because timerWheelEnable is false"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        topic = self.check_topic(header.topic, header.consumer_group, header.queue_id, peer)
        self._check_again(header)
        wanted = PopRead(
            topic=header.topic,
            group=header.consumer_group,
            most=header.max_msg_nums,
            invisible_time=header.invisible_time,
            init_mode=header.init_mode,
            choice=self._choice(header),
            is_ordered=bool(header.order),
            attempt_id=header.attempt_id,
        )
        return topic, wanted

    def _check_again(self, header: PopHeader) -> None:
        """Check that unacknowledged messages can be redelivered."""
        settings = self._runtime.settings
        longest = settings.timer_max_delay_sec * 1000
        if not 0 <= header.invisible_time <= longest:
            reason = (
                f"invisibleTime {header.invisible_time} is not between 0 and {longest} ms "
                "(timerMaxDelaySec)"
            )
            raise RemotingError(_INVALID, reason)
        if header.order or header.topic.startswith(RETRY_PREFIX):
            return
        is_v2 = settings.enable_retry_topic_v2
        name = retry_topic(header.topic, header.consumer_group, is_v2=is_v2)
        is_v2_written = settings.auto_message_version_on_topic_len
        if (fault := retry_topic_fault(name, is_v2_written=is_v2_written)) is not None:
            raise RemotingError(_INVALID, fault)

    def check_topic(self, name: str, group_name: str, queue_id: int, peer: Peer) -> Topic:
        """Return the topic of that name if a group may pop one of its queues.

        Raises:
            RemotingError: the group may not.
        """
        topic = self._state.topics.get(name)
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
        group = self._state.groups.get_or_make(group_name, peer.address)
        if group is None:
            reason = f"subscription group [{group_name}] does not exist"
            raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, reason)
        if not group.consume_enable:
            raise RemotingError(_FORBIDDEN, f"subscription group no permission, {group_name}")
        return topic

    def _choice(self, header: PopHeader) -> Choice:
        try:
            return (
                choice(self._runtime.settings, header.exp, header.exp_type)
                if header.exp
                else Choice()
            )
        except ExpressionError as error:
            reason = f"parse the consumer's subscription failed: {error}"
            raise RemotingError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, reason) from None


class _WaitingPop:
    def __init__(
        self, family: PopRequests, peer: Peer, request: Command, header: PopHeader
    ) -> None:
        self.peer, self._family = peer, family
        self._request, self._header, self.code = request, _bare(header), request.code

    def try_again(self) -> Job[bool]:
        return self._family.try_again(self.peer, self._request, self._header)

    def give_up(self) -> None:
        self._family.give_up(self.peer, self._request, self._header)


def _bare(header: PopHeader) -> PopHeader:
    """Return the parts of its header that a waiting request needs."""
    return msgspec.structs.replace(
        header,
        attempt_id=header.attempt_id if header.order else None,
        exp_type=header.exp_type if header.exp else None,
    )
