"""What one connection knows about the queues that were declared on it."""

from __future__ import annotations

from mqlake.kombu.sources import TopicSource
from mqlake.protocol.bodies.message_queue import MessageQueue

Offsets = dict[MessageQueue, int]


class Declarations:
    """The queues of a connection.

    Attributes:
        followed: for each queue, the exchanges whose topics this process reads by itself, with the
            offsets of each.
        shared: for each durable queue, the fanout exchanges that it is bound to, and what its
            consumers in all processes share.
        temporary: topics that are deleted with the connection.
    """

    def __init__(self) -> None:
        self._transient: dict[str, bool] = {}
        self._kept: set[str] = set()
        self.followed: dict[str, dict[str, Offsets]] = {}
        self.shared: dict[str, dict[str, TopicSource]] = {}
        self.temporary: set[str] = set()

    def declare(self, queue: str, *, durable: bool, auto_delete: bool, exclusive: bool) -> bool:
        """Note a queue; return whether it needs a topic now."""
        if auto_delete or exclusive:
            self._transient[queue] = durable and not exclusive
            return False
        return True

    def keep(self, queue: str) -> bool:
        """Note that a queue is bound to a direct exchange; return whether it needs a topic now.

        Senders of tasks declare such a queue, too, and Celery's queues of single workers are
        `auto_delete`: what was sent while the worker is away must wait for it.
        """
        if not self._transient.get(queue):
            return False
        self._kept.add(queue)
        return True

    def is_transient(self, queue: str) -> bool:
        """Return whether a queue is deleted with its connection."""
        return queue in self._transient and queue not in self._kept

    def reads_own_topic(self, queue: str) -> bool:
        """Return whether a queue's own topic is read: the queue has it, or follows nothing."""
        return not self.is_transient(queue) or queue not in self.followed

    def takes_from(self, queue: str, exchange: str) -> bool:
        """Return whether messages of an exchange must be sent to the queue's own topic."""
        return not self.is_transient(queue) or exchange not in self.followed.get(queue, {})

    def forget_exchange(self, exchange: str) -> None:
        """Note that an exchange was deleted: no queue is bound to it any more."""
        for bound in (self.followed, self.shared):
            for queue in list(bound):
                bound[queue].pop(exchange, None)
                if not bound[queue]:
                    del bound[queue]

    def forget(self, queue: str) -> None:
        """Note that a queue was deleted."""
        self._transient.pop(queue, None)
        self._kept.discard(queue)
        self.followed.pop(queue, None)
        self.shared.pop(queue, None)
