"""Who has which queue for itself.

Upstream: `RebalanceLockManager`. A lock ends when it is not renewed for a minute, and not when its
owner's connection ends: the owner may be working on the queue still, and takes its lock for good
for half of that time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mqlake.remoting.bodies.message_queue import MessageQueue

LIFETIME = 60_000
"""Milliseconds after which a lock that was not renewed is free."""


@dataclass(slots=True)
class _Lock:
    client_id: str
    renewed: int


class QueueLocks:
    """The locks of all groups.

    Args:
        now: milliseconds that never go back.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._groups: dict[str, dict[MessageQueue, _Lock]] = {}

    def lock(
        self, group: str, client_id: str, queues: Iterable[MessageQueue]
    ) -> list[MessageQueue]:
        """Lock what is free, renew what the client has; return the queues it has now."""
        locks, now = self._groups.setdefault(group, {}), self._now()
        owned: list[MessageQueue] = []
        for queue in dict.fromkeys(queues):
            lock = locks.get(queue)
            if lock is None or lock.client_id == client_id or now - lock.renewed > LIFETIME:
                locks[queue] = _Lock(client_id, now)
                owned.append(queue)
        return owned

    def unlock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        """Free the queues that the client has."""
        locks = self._groups.get(group, {})
        for queue in queues:
            lock = locks.get(queue)
            if lock is not None and lock.client_id == client_id:
                del locks[queue]
        if not locks:
            self._groups.pop(group, None)

    def owner(self, group: str, queue: MessageQueue) -> str | None:
        """Return the id of the client that has a queue, None where it is free."""
        lock = self._groups.get(group, {}).get(queue)
        return lock.client_id if lock and self._now() - lock.renewed <= LIFETIME else None

    def are_held(self, group: str) -> bool:
        """Say whether a client of a group has any queue for itself."""
        oldest = self._now() - LIFETIME
        return any(lock.renewed >= oldest for lock in self._groups.get(group, {}).values())

    def expire(self) -> None:
        """Forget the locks that are over."""
        oldest = self._now() - LIFETIME
        for group, locks in list(self._groups.items()):
            for queue in [queue for queue, lock in locks.items() if lock.renewed < oldest]:
                del locks[queue]
            if not locks:
                del self._groups[group]
