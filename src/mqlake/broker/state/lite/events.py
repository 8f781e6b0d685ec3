"""Which lite topics have something new for which client (upstream: `LiteEventDispatcher`)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import count

from mqlake.broker.state.lite.subscriptions import LiteSubscription, LiteSubscriptions
from mqlake.remoting.slices import Job


class _Events:
    """The events of one client.

    Attributes:
        is_incomplete: whether some did not fit.
        seen: when the client last asked for messages, milliseconds.
    """

    def __init__(self, most: int, now: int) -> None:
        self.most, self.seen = most, now
        self.queues: OrderedDict[str, None] = OrderedDict()
        self.is_incomplete = False

    def offer(self, queue: str) -> bool:
        if queue not in self.queues and len(self.queues) >= self.most:
            self.is_incomplete = True
            return False
        self.queues[queue] = None
        return True


class LiteEvents:
    """The lite topics with new messages, for each client that consumes them.

    Args:
        most_of: returns how many are noted for a client of a group; the others are found later.
        has_more: returns whether a lite topic has a message that a group has not consumed.
        wake: called with a client for which something is noted.
    """

    def __init__(
        self,
        subscriptions: LiteSubscriptions,
        most_of: Callable[[str], int],
        has_more: Callable[[str, str], bool],
        wake: Callable[[str], object],
        now: Callable[[], int],
    ) -> None:
        self._subscriptions, self._most_of, self._has_more = subscriptions, most_of, has_more
        self._wake, self._now = wake, now
        self._events: dict[str, _Events] = {}
        self._turns = count()

    def __len__(self) -> int:
        return len(self._events)

    def seen(self, client_id: str) -> int:
        """Return when a client last asked for messages, milliseconds; -1 if unknown."""
        found = self._events.get(client_id)
        return -1 if found is None else found.seen

    def note(self, queue: str, group: str | None = None) -> None:
        """Note a lite topic with something new for one client of each group, or of one group."""
        by_group: dict[str, list[LiteSubscription]] = {}
        for each in self._subscriptions.subscribers(queue, group):
            by_group.setdefault(each.group, []).append(each)
        for clients in by_group.values():
            self._note(queue, clients)

    def _note(self, queue: str, clients: list[LiteSubscription]) -> None:
        first = next(self._turns) % len(clients) if len(clients) > 1 else 0
        for client in (*clients[first:], *clients[:first]):
            if self._of(client).offer(queue):
                self._wake(client.client_id)
                return

    def _of(self, client: LiteSubscription) -> _Events:
        found = self._events.get(client.client_id)
        if found is None:
            most = self._most_of(client.group)
            found = self._events[client.client_id] = _Events(most, self._now())
        return found

    def take(self, client_id: str) -> str | None:
        """Return the next lite topic with something new for a client; None without one."""
        found = self._events.get(client_id)
        if found is None:
            return None
        found.seen = self._now()
        return found.queues.popitem(last=False)[0] if found.queues else None

    def put_back(self, client_id: str, queue: str) -> None:
        """Note a lite topic again that was taken, after the others, and wake nobody."""
        if (found := self._events.get(client_id)) is not None:
            found.offer(queue)

    def is_incomplete(self, client_id: str) -> bool:
        """Return whether lite topics with something new for a client were not noted, and there is
        room for them now.
        """
        found = self._events.get(client_id)
        return found is not None and found.is_incomplete and 2 * len(found.queues) < found.most

    def incomplete(self) -> list[str]:
        """Return the clients of which that is true."""
        return [client_id for client_id in self._events if self.is_incomplete(client_id)]

    def complete(self, client_id: str) -> Job[None]:
        """Note all lite topics of a client that have something new, as far as they fit."""
        client = self._subscriptions.get(client_id)
        if client is None:
            return
        events = self._of(client)
        events.is_incomplete = False
        for queue in list(client.queues):
            if queue in client.queues and self._has_more(client.group, queue):
                if not events.offer(queue):
                    break
                self._wake(client_id)
            yield

    def forget(self, client_id: str) -> list[str]:
        """Forget a client; return the lite topics that were noted for it."""
        found = self._events.pop(client_id, None)
        return [] if found is None else list(found.queues)
