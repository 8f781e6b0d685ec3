"""Pulls that wait for messages.

A pull waits in its queue's list until something arrives there, its time is up, or its connection
is closed. Upstream looks at all of them every five seconds, too; here each has its own timer.
Upstream: `PullRequestHoldService`, `NotifyMessageArrivingListener`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from mqlake.remoting.command import Command
from mqlake.remoting.connection import Peer
from mqlake.remoting.headers.pull import PullHeader
from mqlake.remoting.held_back import HeldBack
from mqlake.store.reads.arrivals import Arrivals

LONGEST = 3600.0
"""Seconds that a pull waits at most, whatever it asks for."""

_AT_ONCE = 64
"""Pulls that are served in one round of the loop."""


@dataclass(slots=True, eq=False)
class WaitingPull:
    """A pull without an answer.

    Attributes:
        seen: the queue offset before which nothing is wanted of what there is.
        deadline: loop time at which it is answered, come what may.
        timer: what answers it then; set while it waits.
    """

    peer: Peer
    request: Command
    header: PullHeader
    seen: int
    deadline: float
    timer: asyncio.TimerHandle | None = None


class LongPolls:
    """The pulls of one broker that wait.

    Args:
        serve: called with a pull and whether its time is up: it answers, or lets it wait again.
    """

    def __init__(self, arrivals: Arrivals, serve: Callable[[WaitingPull, bool], None]) -> None:
        self._arrivals, self._serve = arrivals, serve
        self._loop = asyncio.get_running_loop()
        self._topics: dict[str, _Topic] = {}
        self._ready: list[WaitingPull] = []
        self._unread = HeldBack(self._serve_waiting)

    def __len__(self) -> int:
        return sum(len(pulls) for topic in self._topics.values() for pulls in topic.queues.values())

    def deadline(self, milliseconds: int) -> float:
        """Return the loop time at which a pull is answered that waits so long."""
        return self._loop.time() + min(max(milliseconds, 0) / 1000, LONGEST)

    def wait(self, pull: WaitingPull, *, is_behind: bool = False) -> None:
        """Let a pull wait until messages arrive in its queue, or its time is up.

        Args:
            is_behind: there are some that it has not seen; others are served in between.
        """
        name, queue_id = pull.header.topic, pull.header.queue_id
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = _Topic(self._wake)
            self._arrivals.listen(name, topic)
        topic.queues.setdefault(queue_id, {})[pull] = None
        pull.timer = self._loop.call_at(pull.deadline, self._expire, pull)
        if is_behind:
            self._wake([pull])

    def _wake(self, pulls: list[WaitingPull]) -> None:
        """Serve pulls later in this round of the loop: the dispatcher is still at work."""
        if not self._ready:
            self._loop.call_soon(self._serve_ready)
        self._ready += pulls

    def _serve_ready(self) -> None:
        ready, self._ready = self._ready[:_AT_ONCE], self._ready[_AT_ONCE:]
        if self._ready:
            self._loop.call_soon(self._serve_ready)
        for pull in ready:
            if pull.peer.is_choked:
                self._unread.add(pull.peer, pull)
            else:
                self._serve_waiting(pull)

    def _serve_waiting(self, pull: WaitingPull) -> None:
        if self._leave(pull) and not pull.peer.is_closed:
            self._serve(pull, False)

    def _expire(self, pull: WaitingPull) -> None:
        if self._leave(pull) and not pull.peer.is_closed:
            self._serve(pull, True)

    def _leave(self, pull: WaitingPull) -> bool:
        """Take a pull out; say whether it was waiting still."""
        name, queue_id = pull.header.topic, pull.header.queue_id
        topic = self._topics.get(name)
        if topic is None or pull not in topic.queues.get(queue_id, ()):
            return False
        del topic.queues[queue_id][pull]
        if not topic.queues[queue_id]:
            del topic.queues[queue_id]
            if not topic.queues:
                del self._topics[name]  # and the arrivals forget it
        if pull.timer is not None:
            pull.timer.cancel()
        return True

    def stop(self) -> None:
        """Answer all of them now."""
        waiting = [topic.queues.values() for topic in self._topics.values()]
        for pull in [pull for queues in waiting for pulls in queues for pull in pulls]:
            self._expire(pull)


class _Topic:
    """The pulls of one topic that wait, in order, by queue."""

    def __init__(self, wake: Callable[[list[WaitingPull]], None]) -> None:
        self._wake = wake
        self.queues: dict[int, dict[WaitingPull, None]] = {}

    def arrived(self, queue_id: int, max_offset: int) -> None:
        pulls = self.queues.get(queue_id)
        if pulls:
            ready = [pull for pull in pulls if pull.seen < max_offset]
            if ready:
                self._wake(ready)

    def closed(self) -> None:
        """Nothing to do: all were answered when the broker began to stop."""
