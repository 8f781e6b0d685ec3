"""Pops that wait for messages (upstream: `PopLongPollingService`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from mqlake.broker.parking import Parked, Parking
from mqlake.broker.pop.rounds import ALL_QUEUES, Rounds
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.protocol.retry_topics import retry_topics
from mqlake.remoting.connection import Peer
from mqlake.remoting.held_back import HeldBack
from mqlake.remoting.shares import Shares, owner_of
from mqlake.remoting.slices import Job

_log = logging.getLogger(__name__)

_LONGEST = 5 * 60.0
"""Maximum seconds that a request waits."""
_MOST_UNUSED: Final = 4096
"""Topics of groups for which nothing waits, and which listeners still have: most are soon asked for
again.
"""

Turn = tuple[str, str]
"""Topic and group."""


class Waits(Protocol):
    """A request that waits.

    Attributes:
        code: its request code.
    """

    peer: Peer
    code: int

    def try_again(self) -> Job[bool]:
        """Answer if there is something now; return whether it did."""
        ...

    def give_up(self) -> None:
        """Answer that there is nothing, or that this broker has become a slave."""
        ...


class _Waiter:
    """A request in a queue of requests.

    Attributes:
        is_held_back: whether it is tried only once its connection has read what was written.
        is_trying: whether it is being tried now, a slice at a time.
        is_over: whether its time was up meanwhile.
    """

    __slots__ = (
        "is_held_back",
        "is_over",
        "is_trying",
        "moment",
        "peer",
        "queue_id",
        "turn",
        "what",
    )

    def __init__(self, what: Waits, turn: Turn, queue_id: int) -> None:
        self.what, self.peer = what, what.peer
        self.turn, self.queue_id = turn, queue_id
        self.moment: dict[Parked, None] | None = None
        self.is_held_back = self.is_trying = self.is_over = False


class _ServingOrder:
    """Groups of requests for which something has arrived, in the order in which they are served.

    Attributes:
        arrived: the queues in which messages have arrived.
    """

    def __init__(self) -> None:
        self.arrived: dict[Turn, set[int]] = {}
        self.is_served = False


class _TopicListener:
    """Notified by the dispatcher of messages in one topic."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell = tell
        self.turns: set[Turn] = set()

    def arrived(self, queue_id: int, max_offset: int) -> None:  # noqa: ARG002
        """Let the requests try again soon."""
        self._tell(queue_id)

    def closed(self) -> None:
        """Do nothing: the broker no longer answers."""


class WaitingPops:
    """The requests that wait for messages of a topic, each for one queue or for all.

    Requests for topics with very many queues have a separate line, in which they wait only for each
    other.
    """

    def __init__(self, state: BrokerState, runtime: BrokerRuntime, rounds: Rounds) -> None:
        self._state, self._runtime, self._rounds = state, runtime, rounds
        self._loop = asyncio.get_running_loop()
        self._queues: dict[Turn, dict[int, dict[_Waiter, None]]] = {}
        self._listeners: dict[str, _TopicListener] = {}
        self._unused: dict[Turn, None] = {}
        self._line, self._long_line = _ServingOrder(), _ServingOrder()
        # Queues with new messages, by topic, for which nobody has been woken yet.
        self._arrived: dict[str, set[int]] = {}
        self._is_waking = False
        self._wakes = 0
        self._to_wake: set[tuple[str, str, int]] = set()
        self._parking = Parking[_Waiter](runtime.slices, self._over, self._remove)
        self._unread = HeldBack(self._look_again)
        self._shares = Shares(lambda: runtime.settings.max_address_share)
        runtime.live.on_change(self._role_changed, "broker_role")

    @property
    def news(self) -> tuple[int, int]:
        """A value that changes if there may be something new to pop."""
        return self._wakes, self._state.store.watermarks.dispatched

    def count(self, topic: str, group: str, queue_id: int) -> int:
        """Return how many requests wait for a queue."""
        return len(self._queues.get((topic, group), {}).get(queue_id, ()))

    def is_full(self, topic: str, group: str, queue_id: int, peer: Peer) -> bool:
        """Return whether the maximum of waiting requests, or a client's share, is reached."""
        settings, waiting = self._runtime.settings, len(self._parking)
        if self.count(topic, group, queue_id) > settings.pop_polling_size:
            return True
        owner, most = owner_of(peer.address), settings.max_pop_polling_size
        return self._shares.refusal(owner, waiting, most, "maxPopPollingSize") is not None

    def add(self, topic: str, group: str, queue_id: int, what: Waits, milliseconds: int) -> None:
        """Let a request wait, for a maximum time."""
        turn = (topic, group)
        waiter = _Waiter(what, turn, queue_id)
        seconds = min(milliseconds / 1000, _LONGEST)
        if not self._parking.enter(waiter, self._loop.time() + seconds):
            return
        self._queues.setdefault(turn, {}).setdefault(queue_id, {})[waiter] = None
        self._shares.add(owner_of(waiter.peer.address))
        self._unused.pop(turn, None)
        for name in (topic, *retry_topics(topic, group)):
            self._listen(name).turns.add(turn)

    def wake(self, topic: str, group: str, queue_id: int) -> None:
        """Let the requests try again soon that wait for a queue of a topic, or for all of them."""
        self._wakes += 1
        if (topic, group) in self._queues:
            self._queue_up((topic, group), (queue_id,))

    def _queue_up(self, turn: Turn, queue_ids: Iterable[int]) -> None:
        line = self._line if self._rounds.are_short(turn[0]) else self._long_line
        if not line.is_served:
            line.is_served = True
            self._runtime.slices.start(self._serve(line))
        line.arrived.setdefault(turn, set()).update(queue_ids)

    def wake_at(self, time: int, topic: str, group: str, queue_id: int) -> None:
        """Do so at a time (ms), unless it is already scheduled for that time."""
        key = (topic, group, queue_id)
        if key in self._to_wake:
            return

        def wake() -> None:
            self._to_wake.discard(key)
            self.wake(*key)

        self._to_wake.add(key)
        left = (time - self._state.store.clock.milliseconds()) / 1000
        self._loop.call_later(max(0.0, min(left, _LONGEST)), wake)

    def _listen(self, name: str) -> _TopicListener:
        listener = self._listeners.get(name)
        if listener is None:
            listener = _TopicListener(lambda queue_id: self._note(name, queue_id))
            self._listeners[name] = listener
            self._state.store.reads.arrivals.listen(name, listener)
        return listener

    def _note(self, name: str, queue_id: int) -> None:
        """Note an arrival: very many groups may wait for it, and the dispatcher does not wait."""
        self._wakes += 1
        self._arrived.setdefault(name, set()).add(queue_id)
        if not self._is_waking:
            self._is_waking = True
            self._runtime.slices.start(self._wake_all())

    def _wake_all(self) -> Job[None]:
        try:
            while self._arrived:
                name = next(iter(self._arrived))
                yield from self._wake_turns(name, self._arrived.pop(name))
        finally:
            self._is_waking = False

    def _wake_turns(self, name: str, queue_ids: set[int]) -> Job[None]:
        """Let the requests try again that wait for a topic; those that begin to wait meanwhile see
        the new messages.
        """
        listener = self._listeners.get(name)
        if listener is None:
            return
        for turn in list(listener.turns):
            waiting = self._queues.get(turn)
            if waiting is None:
                listener.turns.discard(turn)
            elif name != turn[0]:
                # A message of the retry topic is for any waiting request.
                self._queue_up(turn, (ALL_QUEUES,))
            else:
                self._queue_up(turn, [each for each in waiting if each in queue_ids])
            yield
        self._forget_unused(name, listener)

    def _forget_unused(self, name: str, listener: _TopicListener) -> None:
        """Forget a listener for which nothing waits, unless another one has its place already."""
        if not listener.turns and self._listeners.get(name) is listener:
            del self._listeners[name]

    def _serve(self, line: _ServingOrder) -> Job[None]:
        try:
            while line.arrived:
                turn = next(iter(line.arrived))
                queue_ids = line.arrived.pop(turn)
                waiting = self._queues.get(turn, {})
                # A request for one queue can use messages of the retry topic, too.
                wanted = set(waiting) if ALL_QUEUES in queue_ids else {ALL_QUEUES, *queue_ids}
                for queue_id in sorted(wanted & set(waiting)):
                    yield from self._serve_queue(turn, queue_id)
                yield
        finally:
            line.is_served = False

    def _serve_queue(self, turn: Turn, queue_id: int) -> Job[None]:
        for waiter in list(self._queues.get(turn, {}).get(queue_id, ())):
            if waiter.peer.is_choked:
                self._hold_back(waiter)
            elif waiter.moment is not None and not waiter.peer.is_closed:
                if not (yield from self._try_again(waiter)):
                    return
                if self._parking.leave(waiter):
                    self._remove(waiter)
            yield

    def _hold_back(self, waiter: _Waiter) -> None:
        """Let messages go to others meanwhile: this client has yet to read what was written."""
        if not waiter.is_held_back:
            waiter.is_held_back = True
            self._unread.add(waiter.peer, waiter)

    def _look_again(self, waiter: _Waiter) -> None:
        waiter.is_held_back = False
        if waiter.moment is not None:
            self.wake(*waiter.turn, waiter.queue_id)

    def _try_again(self, waiter: _Waiter) -> Job[bool]:
        """Let a request try; one that fails is dropped, and does not affect the others."""
        waiter.is_trying = True
        try:
            is_answered = yield from waiter.what.try_again()
        except Exception:  # noqa: BLE001 (see above)
            _log.exception("%s: a waiting request failed", waiter.peer.address)
            waiter.what.give_up()
            return True
        finally:
            waiter.is_trying = False
        if waiter.is_over and not is_answered:
            waiter.what.give_up()
            return True
        return is_answered

    def topic_ended(self, topic: str) -> Job[None]:
        """Answer the requests that wait for a topic: there is nothing."""
        yield from self._end(lambda turn: turn[0] == topic)

    def group_ended(self, group: str) -> Job[None]:
        """Answer the requests of a group: there is nothing."""
        yield from self._end(lambda turn: turn[1] == group)

    def _role_changed(self) -> None:
        """Answer what only a master serves, if this broker is a slave now."""
        if self._runtime.settings.is_slave:
            self._runtime.slices.start(self._refuse())

    def _refuse(self) -> Job[None]:
        for turn in list(self._queues):
            waiting = self._queues.get(turn, {})
            for waiter in [each for waiters in waiting.values() for each in waiters]:
                is_refused = self._state.refusals.of(waiter.what.code) is not None
                if is_refused and self._parking.leave(waiter):
                    self._over(waiter)
                yield

    def _end(self, is_over: Callable[[Turn], bool]) -> Job[None]:
        for turn in [turn for turn in self._queues if is_over(turn)]:
            waiting = self._queues.get(turn, {})
            for waiter in [each for waiters in waiting.values() for each in waiters]:
                if self._parking.leave(waiter):
                    self._over(waiter)
                yield
        for name, listener in list(self._listeners.items()):
            # A group may be there again, and wait already.
            over = {turn for turn in listener.turns if is_over(turn) and turn not in self._queues}
            listener.turns -= over
            self._forget_unused(name, listener)
            yield
        for turn in [turn for turn in self._unused if is_over(turn)]:
            del self._unused[turn]

    def _over(self, waiter: _Waiter) -> None:
        self._remove(waiter)
        waiter.is_over = True
        if not waiter.is_trying:
            waiter.what.give_up()

    def _remove(self, waiter: _Waiter) -> None:
        self._shares.add(owner_of(waiter.peer.address), -1)
        turn, queue_id = waiter.turn, waiter.queue_id
        waiting = self._queues[turn]
        del waiting[queue_id][waiter]
        if not waiting[queue_id]:
            del waiting[queue_id]
        if not waiting:
            del self._queues[turn]
            self._note_unused(turn)

    def _note_unused(self, turn: Turn) -> None:
        """Let listeners forget the topic of a group for which nothing has waited longest, if there
        are many: messages may never arrive, in retry topics least of all.
        """
        self._unused[turn] = None
        if len(self._unused) <= _MOST_UNUSED:
            return
        oldest = next(iter(self._unused))
        del self._unused[oldest]
        for name in (oldest[0], *retry_topics(*oldest)):
            if (listener := self._listeners.get(name)) is not None:
                listener.turns.discard(oldest)
                self._forget_unused(name, listener)
