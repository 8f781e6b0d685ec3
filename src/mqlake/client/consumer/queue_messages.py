"""The unfinished messages that were read of one queue (upstream: `ProcessQueue`)."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter

from msgspec import structs

from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.protocol.bodies.message_queue import MessageQueue

_queue_offset = attrgetter("queue_offset")


class QueueMessages:
    """The messages that a consumer holds of a queue that it owns.

    Args:
        now: a clock in seconds.
        in_order: hands over one batch at a time, and the next one when that is finished.

    Attributes:
        queue: the queue.
        next_offset: the queue offset to read from next; None before that is known.
        is_begun: set once that is known, or the first attempt to find it has failed.
        is_dropped: whether another consumer owns the queue now, or it is read from another offset.
            Offsets of the held messages are then no longer committed.
        bytes: the size of the held bodies.
        last_pull: when the queue was last read, in seconds.
        last_taken: when messages were last handed over, in seconds.
        locked_until: when its lock is too old to hand over messages in order, in seconds.
        suspended_until: nothing is handed over before this time, in seconds.
    """

    def __init__(self, queue: MessageQueue, now: Callable[[], float], *, in_order: bool) -> None:
        self.queue, self._now, self._in_order = queue, now, in_order
        self.next_offset: int | None = None
        self.is_begun = asyncio.Event()
        self.last_pull = self.last_taken = now()
        self.locked_until = 0.0
        self.suspended_until = 0.0
        self.is_dropped = False
        self.bytes = 0
        self._unfinished: dict[int, ConsumedMessage] = {}
        self._ready: deque[ConsumedMessage] = deque()
        self._out: dict[int, float] = {}
        self._parked: set[int] = set()
        self._left_behind: set[ConsumedMessage] = set()
        self._shrinking: asyncio.Future[None] | None = None
        self._small = 0

    def __len__(self) -> int:
        return len(self._unfinished)

    @property
    def is_locked(self) -> bool:
        """Return whether it may be consumed: in order only with a valid lock."""
        return self.locked_until > self._now()

    @property
    def is_ready(self) -> bool:
        """Return whether a message can be handed over now."""
        if not self._ready or self.is_dropped:
            return False
        if not self._in_order:
            return True
        return not self.has_out and self.is_locked and self.suspended_until <= self._now()

    @property
    def has_out(self) -> bool:
        """Return whether a handler or a broker still has unfinished messages."""
        return bool(self._out or self._parked or self._left_behind)

    @property
    def span(self) -> int:
        """Return how far the last unfinished message is from the first one."""
        bounds = self.bounds
        return bounds[1] - bounds[0] if bounds else 0

    @property
    def bounds(self) -> tuple[int, int] | None:
        """Return the queue offsets of the first and the last unfinished message."""
        if not self._unfinished:
            return None
        return next(iter(self._unfinished)), next(reversed(self._unfinished))

    @property
    def committed_offset(self) -> int | None:
        """Return the queue offset before which everything is finished.

        None if that is unknown, or the queue was dropped.
        """
        return None if self.is_dropped else next(iter(self._unfinished), self.next_offset)

    def add(self, messages: Iterable[ConsumedMessage], next_offset: int) -> None:
        """Add messages that were read, and the next offset to read.

        Messages before the requested offset are left out: they are finished, or held already.
        """
        asked = self.next_offset or 0
        for message in sorted(messages, key=_queue_offset):
            if message.queue_offset < asked or message.queue_offset in self._unfinished:
                continue
            self._unfinished[message.queue_offset] = message
            self._ready.append(message)
            self.bytes += len(message.body)
        self.next_offset = next_offset

    def take(self, most: int) -> Sequence[ConsumedMessage]:
        """Hand over the next messages, if any are ready."""
        if not self.is_ready:
            return ()
        ready = self._ready
        taken = [ready.popleft() for _ in range(min(most, len(ready)))]
        self.last_taken = now = self._now()
        for message in taken:
            self._out[message.queue_offset] = now
        return taken

    def is_out(self, message: ConsumedMessage) -> bool:
        """Return whether this is the latest delivery of a message that is not finished."""
        return message.queue_offset in self._out and self._is_held(message)

    def is_parked(self, message: ConsumedMessage) -> bool:
        """Return whether the last call for a message was `park`."""
        return message.queue_offset in self._parked and self._is_held(message)

    def _is_held(self, message: ConsumedMessage) -> bool:
        return self._unfinished.get(message.queue_offset) is message

    def park(self, message: ConsumedMessage) -> None:
        """Hold back a message that is handed over while a broker is asked to redeliver it.

        Until `finish` or `give_back`, neither its handler nor a timeout can change its state.
        """
        del self._out[message.queue_offset]
        self._parked.add(message.queue_offset)

    def finish(self, message: ConsumedMessage) -> float:
        """Remove a message that is handed over or parked, because it is finished.

        Returns:
            The seconds for which it was handed over.
        """
        del self._unfinished[message.queue_offset]
        since = self._out.pop(message.queue_offset, None)
        self._parked.discard(message.queue_offset)
        self.bytes -= len(message.body)
        if self._shrinking is not None:
            self._note_size()
        return 0.0 if since is None else self._now() - since

    def give_back(self, message: ConsumedMessage, reconsume_times: int) -> None:
        """Deliver a message that is handed over or parked again, as a new object.

        The handler that has the old object can no longer finish it.
        """
        self._forget_delivery(message)
        again = structs.replace(message, reconsume_times=reconsume_times)
        self._unfinished[message.queue_offset] = again
        insort(self._ready, again, key=_queue_offset)

    async def shrunk(self, seconds: float) -> None:
        """Wait until half of the held messages are finished, but no longer than some seconds."""
        loop = asyncio.get_running_loop()
        self._small = len(self) // 2
        self._shrinking = loop.create_future()
        timer = loop.call_later(seconds, self._end_shrinking)
        try:
            await self._shrinking
        finally:
            timer.cancel()
            self._shrinking = None

    def _note_size(self) -> None:
        if len(self) <= self._small:
            self._end_shrinking()

    def _end_shrinking(self) -> None:
        if self._shrinking is not None and not self._shrinking.done():
            self._shrinking.set_result(None)

    def _forget_delivery(self, message: ConsumedMessage) -> None:
        self._out.pop(message.queue_offset, None)
        self._parked.discard(message.queue_offset)

    def release(self, message: ConsumedMessage) -> bool:
        """Note that a handler is done with a message from before `restart`.

        Returns:
            Whether there was such a message.
        """
        if message not in self._left_behind:
            return False
        self._left_behind.discard(message)
        return True

    def out_since(self, before: float) -> Sequence[ConsumedMessage]:
        """Return the unfinished messages that were handed over before a time."""
        found: list[ConsumedMessage] = []
        for offset, since in self._out.items():  # The first one has been handed over for longest.
            if since >= before:
                break
            found.append(self._unfinished[offset])
        return found

    def restart(self, offset: int, handled: AbstractSet[ConsumedMessage] = frozenset()) -> None:
        """Drop all messages, and continue at another offset.

        In order, nothing is handed over until the handlers are done with the messages that they
        have.

        Args:
            handled: the messages that handlers have now, of any queue.
        """
        if self._in_order:
            out = {self._unfinished[number] for number in self._out}
            self._left_behind |= out & handled
        self._clear()
        self.next_offset = offset

    def drop(self) -> None:
        """Drop all messages permanently."""
        self.is_dropped = True
        self._clear()
        self._left_behind.clear()

    def _clear(self) -> None:
        for each in (self._ready, self._unfinished, self._out, self._parked):
            each.clear()
        self.bytes = 0
