"""The locks on queues, and their owners.

Upstream: `RebalanceLockManager`. A lock ends when it is not renewed for a minute, and not when its
owner's connection ends: the owner may still be processing the queue, and trusts its lock for half
of that time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.remoting.shares import Shares
from mqlake.remoting.slices import Job

LIFETIME = 60_000
"""Milliseconds after which a lock expires if it is not renewed."""


@dataclass(slots=True)
class _Lock:
    client_id: str
    renewed: int
    share: str


class QueueLocks:
    """The locks of all groups.

    Args:
        now: milliseconds that never go back.

    Attributes:
        shares: the locks of each client.
    """

    def __init__(self, now: Callable[[], int], shares: Shares) -> None:
        self._now, self.shares = now, shares
        self._groups: dict[str, dict[MessageQueue, _Lock]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def lock(self, group: str, client_id: str, queue: MessageQueue, share: str = "") -> bool:
        """Lock a free queue, or renew a client's lock; return whether the client now owns the
        queue.

        Args:
            share: to whose share the lock counts.
        """
        locks, now = self._groups.setdefault(group, {}), self._now()
        lock = locks.get(queue)
        if lock is not None and lock.client_id != client_id and now - lock.renewed <= LIFETIME:
            return False
        self._count += lock is None
        if lock is not None:
            self.shares.add(lock.share, -1)
        self.shares.add(share)
        locks[queue] = _Lock(client_id, now, share)
        return True

    def unlock(self, group: str, client_id: str, queue: MessageQueue) -> None:
        """Unlock a queue if the client owns it."""
        locks = self._groups.get(group, {})
        lock = locks.get(queue)
        if lock is not None and lock.client_id == client_id:
            self._remove(group, locks, queue)

    def _remove(self, group: str, locks: dict[MessageQueue, _Lock], queue: MessageQueue) -> None:
        self.shares.add(locks.pop(queue).share, -1)
        self._count -= 1
        if not locks:
            del self._groups[group]

    def owner(self, group: str, queue: MessageQueue) -> str | None:
        """Return the id of the client that owns a queue, None if the queue is free."""
        lock = self._groups.get(group, {}).get(queue)
        return lock.client_id if lock and self._now() - lock.renewed <= LIFETIME else None

    def are_held(self, group: str) -> bool:
        """Return whether a client of a group owns any queue."""
        oldest = self._now() - LIFETIME
        return any(lock.renewed >= oldest for lock in self._groups.get(group, {}).values())

    def expire(self) -> Job[None]:
        """Remove expired locks."""
        oldest = self._now() - LIFETIME
        for group, locks in list(self._groups.items()):
            for queue, lock in list(locks.items()):
                if lock.renewed < oldest and locks.get(queue) is lock:
                    self._remove(group, locks, queue)
                yield
