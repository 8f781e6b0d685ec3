"""The messages of one queue that were read and are not finished (upstream: `ProcessQueue`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.protocol.bodies.message_queue import MessageQueue


class QueueMessages:
    """What a consumer holds of a queue that is its own.

    Args:
        now: a clock in seconds.
        in_order: hands over one batch at a time, and the next one when that is finished.

    Attributes:
        queue: which one.
        next_offset: the queue offset to read from next; None before that is known.
        is_dropped: it is another consumer's now, or is read from elsewhere: what is held of it is
            not committed any more.
        bytes: of the bodies that are held.
        last_pull: when it was last read, seconds.
        locked_until: when its lock is too old to hand over in order, seconds.
        suspended_until: nothing is handed over before, seconds.
    """

    def __init__(self, queue: MessageQueue, now: Callable[[], float], *, in_order: bool) -> None:
        self.queue, self._now, self._in_order = queue, now, in_order
        self.next_offset: int | None = None
        self.last_pull = now()
        self.locked_until = 0.0
        self.suspended_until = 0.0
        self.is_dropped = False
        self.bytes = 0
        self._unfinished: dict[int, ConsumedMessage] = {}
        self._ready: deque[ConsumedMessage] = deque()
        self._out: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._unfinished)

    @property
    def is_locked(self) -> bool:
        """Whether it may be consumed: in order only under a fresh lock."""
        return self.locked_until > self._now()

    @property
    def is_ready(self) -> bool:
        """Whether there is something to hand over now."""
        if not self._ready or self.is_dropped:
            return False
        if not self._in_order:
            return True
        return not self._out and self.is_locked and self.suspended_until <= self._now()

    @property
    def has_out(self) -> bool:
        """Whether messages are handed over and not finished."""
        return bool(self._out)

    @property
    def span(self) -> int:
        """Return how far the last message that is held is from the first one."""
        if not self._unfinished:
            return 0
        return next(reversed(self._unfinished)) - next(iter(self._unfinished))

    @property
    def committed_offset(self) -> int | None:
        """Return the queue offset before which everything is finished; None if it is not known."""
        return next(iter(self._unfinished), self.next_offset)

    def add(self, messages: Iterable[ConsumedMessage], next_offset: int) -> None:
        """Take in what was read, and where to read next.

        What comes before the place that was asked for is left out: it is finished, or held.
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
        """Hand over the next messages, if some are ready."""
        if not self.is_ready:
            return ()
        taken = [self._ready.popleft() for _ in range(min(most, len(self._ready)))]
        now = self._now()
        self._out.update((message.queue_offset, now) for message in taken)
        return taken

    def holds(self, message: ConsumedMessage) -> bool:
        """Whether a message is one of its own, handed over and not finished."""
        return self._unfinished.get(message.queue_offset) is message and not self.is_dropped

    def finish(self, message: ConsumedMessage) -> None:
        """Take note that a message that it holds is done with."""
        del self._unfinished[message.queue_offset]
        self._out.pop(message.queue_offset, None)
        self.bytes -= len(message.body)

    def give_back(self, message: ConsumedMessage) -> None:
        """Put a message that was handed over in front again."""
        self._out.pop(message.queue_offset, None)
        self._ready.appendleft(message)

    def out_since(self, before: float) -> Sequence[ConsumedMessage]:
        """Return the messages that were handed over before a time, and are not finished."""
        late = [offset for offset, since in self._out.items() if since < before]
        return [self._unfinished[offset] for offset in late if offset in self._unfinished]

    def drop(self) -> None:
        """Hold nothing any more."""
        self.is_dropped = True
        self._ready.clear()
        self._unfinished.clear()
        self._out.clear()
        self.bytes = 0


def _queue_offset(message: ConsumedMessage) -> int:
    return message.queue_offset
