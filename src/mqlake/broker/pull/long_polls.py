"""Pulls that wait for messages.

A pull waits in its queue's list until a message arrives there, its time is up, or its connection is
closed. An arrival only notes that its queue has news. The pulls are examined afterwards in slices,
a few of each queue in turn. Upstream also examines all of them every five seconds.
Upstream: `PullRequestHoldService`, `NotifyMessageArrivingListener`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from mqlake.broker.parking import Parked, Parking
from mqlake.protocol.command import Command
from mqlake.protocol.headers.pull import PullHeader
from mqlake.remoting.connection import Peer
from mqlake.remoting.held_back import HeldBack
from mqlake.remoting.slices import Job, Slices
from mqlake.store.port import Arrivals

LONGEST = 3600.0
"""Maximum seconds that a pull waits, whatever it requests."""
_ANY_OFFSET = 1 << 63
_IN_TURN = 16
"""Pulls of one queue that are served before those of another queue."""


class Outcome(Enum):
    """The result of examining a waiting pull again."""

    ANSWERED = auto()
    WAITS = auto()
    """No message for it has arrived."""
    IS_BEHIND = auto()
    """The queue has more that it has not examined; others are served in between."""


@dataclass(slots=True, eq=False)
class WaitingPull:
    """A pull without a response.

    Attributes:
        seen: the queue offset before which no existing message matches.
        deadline: loop time at which it is answered in any case.
        moment: see `Parked`.
        queue: where it waits; None if it does not wait.
        is_held_back: it is examined after its connection has read what was written.
        is_over: its time was up while it was held back.
    """

    peer: Peer
    request: Command
    header: PullHeader
    seen: int
    deadline: float
    moment: dict[Parked, None] | None = None
    queue: _Queue | None = None
    is_held_back: bool = False
    is_over: bool = False


class LongPolls:
    """The waiting pulls of one broker.

    Args:
        serve: called with a pull and whether its time is up. It answers the pull, or returns that
            the pull continues to wait. It always answers a pull whose time is up, and never raises.
    """

    def __init__(
        self, arrivals: Arrivals, slices: Slices, serve: Callable[[WaitingPull, bool], Outcome]
    ) -> None:
        self._arrivals, self._slices, self._serve = arrivals, slices, serve
        self._loop = asyncio.get_running_loop()
        self._topics: dict[str, _TopicPolls] = {}
        self._parking = Parking[WaitingPull](slices, self._over, self._forget)
        self._unread = HeldBack(self._look_again)
        self._ready: dict[_Queue, None] = {}
        self._is_serving = False

    def __len__(self) -> int:
        return len(self._parking)

    def of(self, peer: Peer) -> int:
        """Return how many pulls of a connection wait."""
        return self._parking.of(peer)

    def deadline(self, milliseconds: int) -> float:
        """Return the loop time at which a pull that waits this long is answered."""
        return self._loop.time() + min(max(milliseconds, 0) / 1000, LONGEST)

    def wait(self, pull: WaitingPull) -> None:
        """Let a pull wait until messages arrive in its queue, or its time is up."""
        if not self._parking.enter(pull, pull.deadline):
            return
        name, queue_id = pull.header.topic, pull.header.queue_id
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = _TopicPolls(name, self._note)
            self._arrivals.listen(name, topic)
        queue = topic.queues.get(queue_id)
        if queue is None:
            queue = topic.queues[queue_id] = _Queue(topic, queue_id)
        pull.queue = queue
        queue.waiting[pull] = None
        queue.count += 1

    def look_again(self, topic: str) -> None:
        """Examine all waiting pulls of a topic: what they read has changed."""
        if (found := self._topics.get(topic)) is not None:
            for queue_id in list(found.queues):
                found.arrived(queue_id, _ANY_OFFSET)

    def end(self, topic: str) -> Job[None]:
        """Answer all waiting pulls of a topic as if their time were up."""
        found = self._topics.get(topic)
        return self._end([] if found is None else [found])

    def _end(self, topics: list[_TopicPolls]) -> Job[None]:
        queues = [queue for topic in topics for queue in topic.queues.values()]
        for pull in [pull for queue in queues for pull in (*queue.woken, *queue.waiting)]:
            if self._parking.leave(pull):
                self._over(pull)
            yield

    def look_at_all(self) -> Job[None]:
        """Examine all waiting pulls, a topic at a time: what this broker serves has changed."""
        for topic in list(self._topics):
            self.look_again(topic)
            yield

    def make_room(self, peer: Peer) -> list[WaitingPull]:
        """Release waiting pulls of the largest connection, to make room for one of `peer`.

        None if no other connection has more waiting pulls.
        """
        greediest, pulls = self._parking.greediest()
        if greediest is None or self.of(greediest) <= self.of(peer) + 1:
            return []
        for pull in pulls:
            self._parking.leave(pull)
            self._forget(pull)
        return pulls

    def _note(self, queue: _Queue) -> None:
        """Examine the pulls of a queue later in this round: the dispatcher is still at work."""
        self._ready[queue] = None
        if not self._is_serving:
            self._is_serving = True
            self._slices.start(self._serve_ready())

    def _serve_ready(self) -> Job[None]:
        try:
            while self._ready:
                queue = next(iter(self._ready))
                del self._ready[queue]
                for _ in range(_IN_TURN):
                    pull = queue.next()
                    if pull is None:
                        break
                    self._look_at(pull, queue)
                    yield
                else:
                    self._ready[queue] = None
        finally:
            self._is_serving = False

    def _look_at(self, pull: WaitingPull, queue: _Queue) -> None:
        if pull.queue is not queue or pull.peer.is_closed:
            return  # It was answered, or is about to be removed.
        if pull.peer.is_choked:
            self._hold_back(pull)
            return
        outcome = Outcome.WAITS
        # A queue of a topic that was created again may end before the offset.
        if pull.seen != queue.max_offset:
            outcome = self._serve(pull, False)
        if outcome is Outcome.ANSWERED:
            self._parking.leave(pull)
            self._forget(pull)
            return
        queue.waiting[pull] = None
        if outcome is Outcome.IS_BEHIND:
            queue.has_news = True
            self._note(queue)

    def _hold_back(self, pull: WaitingPull) -> None:
        if not pull.is_held_back:
            pull.is_held_back = True
            self._unread.add(pull.peer, pull)

    def _look_again(self, pull: WaitingPull) -> None:
        """Examine a pull that was held back until its connection had read enough."""
        pull.is_held_back = False
        if pull.is_over:
            self._serve(pull, True)
        elif pull.queue is not None:
            self._look_at(pull, pull.queue)

    def _over(self, pull: WaitingPull) -> None:
        """Answer a pull whose time is up."""
        self._forget(pull)
        if pull.peer.is_choked:
            pull.is_over = True
            self._hold_back(pull)
        elif not pull.peer.is_closed:
            self._serve(pull, True)

    def _forget(self, pull: WaitingPull) -> None:
        """Remove a pull from its queue."""
        queue: _Queue | None = pull.queue
        if queue is None:
            return
        pull.queue = None
        queue.waiting.pop(pull, None)
        queue.count -= 1
        if not queue.count:
            topic = queue.topic
            del topic.queues[queue.queue_id]
            if not topic.queues:
                del self._topics[topic.name]  # The arrivals drop it, too.

    def stop(self) -> None:
        """Answer all of them now."""
        for _ in self._end(list(self._topics.values())):
            pass


class _Queue:
    """The waiting pulls of one queue.

    Attributes:
        waiting: those to examine after the next arrival, in order.
        woken: those to examine now; some may have been answered since.
        has_news: a message arrived for which those in `waiting` were not examined yet.
        max_offset: the end of the queue at the last arrival.
        count: the number of pulls in both.
    """

    __slots__ = ("count", "has_news", "max_offset", "queue_id", "topic", "waiting", "woken")

    def __init__(self, topic: _TopicPolls, queue_id: int) -> None:
        self.topic, self.queue_id = topic, queue_id
        self.waiting: dict[WaitingPull, None] = {}
        self.woken: deque[WaitingPull] = deque()
        self.has_news = False
        self.max_offset = self.count = 0

    def next(self) -> WaitingPull | None:
        """Return the next pull to examine, or None."""
        if not self.woken:
            if not self.has_news:
                return None
            self.has_news = False
            self.woken, self.waiting = deque(self.waiting), {}
        return self.woken.popleft() if self.woken else None


class _TopicPolls:
    """The queues of one topic that pulls wait for."""

    def __init__(self, name: str, note: Callable[[_Queue], None]) -> None:
        self.name, self._note = name, note
        self.queues: dict[int, _Queue] = {}

    def arrived(self, queue_id: int, max_offset: int) -> None:
        queue = self.queues.get(queue_id)
        if queue is not None:
            queue.max_offset = max_offset
            queue.has_news = True
            self._note(queue)

    def closed(self) -> None:
        """Do nothing: all pulls were answered when the broker began to stop."""
