"""POP_LITE_MESSAGE (upstream: `PopLiteMessageProcessor`, `PopLiteLongPollingService`)."""

from __future__ import annotations

import asyncio
from typing import Final

from mqlake.broker.parking import Parked, Parking
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.lite.names import is_parent
from mqlake.broker.state.lite.subscriptions import LiteSubscription
from mqlake.errors import MqlakeError
from mqlake.formats.config.topics import PERM_READ, Topic
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.handles.receipts import ORDERED
from mqlake.protocol.headers.lite import PopLiteAnswerHeader, PopLiteHeader
from mqlake.remoting.connection import Peer
from mqlake.remoting.shares import Shares, owner_of
from mqlake.remoting.slices import Job

_MOST: Final = 32
_LATE: Final = 500
"""Milliseconds after its time at which a pop is answered that nobody waits for any more."""
_MOST_EVENTS: Final = 64
"""Lite topics that one pop reads."""
_LONGEST: Final = 5 * 60.0
_LONGEST_ATTEMPT_ID: Final = 255
_FORBIDDEN, _INVALID = ResponseCode.NO_PERMISSION, ResponseCode.INVALID_PARAMETER


class _LiteWaiter:
    """A pop that waits."""

    __slots__ = ("header", "moment", "peer", "request")

    def __init__(self, peer: Peer, request: Command, header: PopLiteHeader) -> None:
        self.peer, self.request, self.header = peer, request, header
        self.moment: dict[Parked, None] | None = None


class LitePops:
    """Serves pops of lite topics."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime, self._lite = state, runtime, state.lite
        self._loop = asyncio.get_running_loop()
        self._now = state.store.clock.milliseconds
        self._waiting: dict[str, dict[_LiteWaiter, None]] = {}
        self._woken: dict[str, None] = {}
        self._parking = Parking[_LiteWaiter](runtime.slices, self._over, self._remove)
        self._shares = Shares(lambda: runtime.settings.max_address_share)
        self._lite.wake_by(self._wake)
        runtime.live.on_change(self._role_changed, "broker_role")

    # POP_LITE_MESSAGE

    def pop(self, peer: Peer, request: Command) -> Command | None:
        """Answer with messages, or let the request wait for some."""
        header = request.header(PopLiteHeader)
        self._check(header)
        answer = self._pop(request, header)
        if answer is not None:
            return answer
        left = self._state.client_clock.time_left(header.poll_time, header.born_time)
        if left < -_LATE or header.poll_time <= 0 or left <= 0:
            return self._nothing(request, header, ResponseCode.POLLING_TIMEOUT)
        owner, most = owner_of(peer.address), self._runtime.settings.max_pop_polling_size
        waiting = len(self._parking)
        if self._shares.refusal(owner, waiting, most, "maxPopPollingSize") is not None:
            return self._nothing(request, header, ResponseCode.POLLING_FULL)
        peer.suspend(request)
        self._park(_LiteWaiter(peer, request.bare(), header), min(left, header.poll_time))
        return None

    def _park(self, waiter: _LiteWaiter, milliseconds: int) -> None:
        seconds = min(milliseconds / 1000, _LONGEST)
        if self._parking.enter(waiter, self._loop.time() + seconds):
            self._waiting.setdefault(waiter.header.client_id, {})[waiter] = None
            self._shares.add(owner_of(waiter.peer.address))

    def _check(self, header: PopLiteHeader) -> Topic:
        if not 0 < header.max_msg_num <= _MOST:
            raise RemotingError(_INVALID, f"pop message's num is not between 1 and {_MOST}")
        if header.attempt_id is not None and len(header.attempt_id) > _LONGEST_ATTEMPT_ID:
            raise RemotingError(_INVALID, "the attemptId is too long; use a UUID")
        if not 0 <= header.invisible_time <= self._runtime.settings.timer_max_delay_sec * 1000:
            raise RemotingError(_INVALID, f"invisibleTime {header.invisible_time} is out of range")
        topic = self._state.topics.get(header.topic)
        if topic is None:
            reason = f"topic [{header.topic}] not exist, apply first please!"
            raise RemotingError(ResponseCode.TOPIC_NOT_EXIST, reason)
        if not topic.perm & PERM_READ:
            raise RemotingError(_FORBIDDEN, f"the topic [{header.topic}] is not readable")
        if not is_parent(topic):
            raise RemotingError(_INVALID, f"the topic [{header.topic}] message type not match")
        group = self._state.groups.get(header.consumer_group)
        if group is None:
            reason = f"subscription group [{header.consumer_group}] not exist"
            raise RemotingError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, reason)
        if not group.consume_enable:
            reason = f"subscription group no permission, {header.consumer_group}"
            raise RemotingError(_FORBIDDEN, reason)
        if self._lite.group(header.consumer_group).topic != header.topic:
            reason = f"subscription bind topic not match, {header.consumer_group}"
            raise RemotingError(_INVALID, reason)
        self._lite.queues.light  # noqa: B018 (it refuses if there are none)
        return topic

    def _pop(self, request: Command, header: PopLiteHeader) -> Command | None:
        """Return messages of the lite topics that have some; None without any."""
        now, client = self._now(), self._client(header)
        if client is None:  # What is noted for a member of another group is not for this one.
            return None
        pieces, counts = self._pop_queues(header, client, now)
        if self._lite.events.is_incomplete(header.client_id):
            self._runtime.slices.start(self._lite.events.complete(header.client_id))
        if not pieces:
            return None
        fields = PopLiteAnswerHeader(
            pop_time=now,
            invisible_time=header.invisible_time,
            revive_qid=ORDERED,
            order_count_info=";".join(map(str, counts)),
        )
        self._count(header, pieces)
        return response(request, header=fields, body=b"".join(pieces), remark="FOUND")

    def _client(self, header: PopLiteHeader) -> LiteSubscription | None:
        """Return the client that pops; None if it is no member of the group."""
        client = self._lite.subscriptions.get(header.client_id)
        is_member = client is not None and client.consumes(header.consumer_group, header.topic)
        return client if is_member else None

    def _pop_queues(
        self, header: PopLiteHeader, client: LiteSubscription, now: int
    ) -> tuple[list[memoryview], list[int]]:
        """Return messages of lite topics with something new, and how often each was popped before.

        One that cannot be read now is kept for a later pop.

        Raises:
            MqlakeError: the first lite topic cannot be read.
        """
        pieces, counts = list[memoryview](), list[int]()
        topic, events = self._state.topics.get(header.topic), self._lite.events
        for _ in range(_MOST_EVENTS):
            queue = events.take(header.client_id)
            if queue is None or topic is None:
                break
            if queue not in client.queues or self._lite.is_expired(topic, queue):
                continue
            try:
                found = self._pop_queue(header, queue, now, header.max_msg_num - len(pieces))
            except MqlakeError:
                events.put_back(header.client_id, queue)
                if not pieces:
                    raise
                break  # The others are popped already, and would be hidden for nothing.
            if found is not None:
                pieces += found[0]
                counts += found[1]
            if len(pieces) >= header.max_msg_num:
                break
        return pieces, counts

    def _pop_queue(
        self, header: PopLiteHeader, queue: str, now: int, most: int
    ) -> tuple[list[memoryview], list[int]] | None:
        lite, key = self._lite, (header.consumer_group, queue)
        if lite.held.is_blocked(key, header.attempt_id):
            return None
        settings = self._runtime.settings
        most_bytes = settings.max_transfer_bytes_on_message_in_memory
        begin = lite.begin_of(header.consumer_group, queue)
        found = lite.queues.read(header.topic, queue, begin, most, most_bytes)
        high = lite.queues.max_offset(header.topic, queue)
        if not found and begin > high > 0:
            # The lite topic has begun again with lower offsets.
            lite.commit(header.consumer_group, queue, 0)
            found = lite.queues.read(header.topic, queue, 0, most, most_bytes)
        if not found:
            return None
        offsets = [each.queue_offset for each in found]
        counts = lite.held.hold(key, header.attempt_id, now, header.invisible_time, offsets)
        return [each.record for each in found], counts

    def _count(self, header: PopLiteHeader, pieces: list[memoryview]) -> None:
        size = sum(map(len, pieces))
        self._state.stats.got(header.consumer_group, header.topic, len(pieces), size)

    def _nothing(self, request: Command, header: PopLiteHeader, code: int) -> Command:
        fields = PopLiteAnswerHeader(
            pop_time=self._now(), invisible_time=header.invisible_time, revive_qid=ORDERED
        )
        return response(request, code, fields, remark="NO_MESSAGE_IN_QUEUE")

    # Waiting

    def _wake(self, client_id: str) -> None:
        """Let a client's waiting pop try again soon."""
        if client_id in self._waiting:
            if not self._woken:
                self._loop.call_soon(self._try_some)
            self._woken[client_id] = None

    def _try_some(self) -> None:
        woken, self._woken = self._woken, {}
        self._runtime.slices.start(self._try_all(list(woken)))

    def _try_all(self, clients: list[str]) -> Job[None]:
        for client_id in clients:
            # The messages are for nobody whose connection is closed.
            waiting = self._waiting.get(client_id, ())
            open_ones = (each for each in waiting if not each.peer.is_closed)
            waiter = next((each for each in open_ones if self._client(each.header)), None)
            if waiter is not None:
                self._try(waiter)
            yield

    def _try(self, waiter: _LiteWaiter) -> None:
        request, header = waiter.request, waiter.header
        try:
            self._state.refusals.check_code(request.code)
            self._check(header)
            answer = self._pop(request, header)
        except RemotingError as error:
            answer = response(request, error.code, remark=error.remark)
        except MqlakeError as error:
            answer = response(request, ResponseCode.SYSTEM_ERROR, remark=str(error))
        if answer is not None and self._parking.leave(waiter):
            self._remove(waiter)
            waiter.peer.answer(request, answer)

    def _over(self, waiter: _LiteWaiter) -> None:
        self._remove(waiter)
        refusal = self._state.refusals.of(waiter.request.code)
        answer = (
            self._nothing(waiter.request, waiter.header, ResponseCode.POLLING_TIMEOUT)
            if refusal is None
            else response(waiter.request, refusal.code, remark=refusal.remark)
        )
        waiter.peer.answer(waiter.request, answer)

    def _remove(self, waiter: _LiteWaiter) -> None:
        own = self._waiting.get(waiter.header.client_id)
        if own is not None and waiter in own:
            del own[waiter]
            self._shares.add(owner_of(waiter.peer.address), -1)
            if not own:
                del self._waiting[waiter.header.client_id]

    def _role_changed(self) -> None:
        self._lite.queues.forget_all()
        if self._runtime.settings.is_slave:
            self._lite.held.clear()
