"""When the invisible times of received messages are extended: a table without time and tasks.

Upstream: `DefaultReceiptHandleManager`, `ReceiptHandleGroup`, `RenewStrategyPolicy`. All times are
milliseconds; `now` is since 1970, by the proxy's clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.consuming.deliveries import GroupDelivery
from mqlake.proxy.consuming.message_handle import MessageHandle
from mqlake.remoting.shares import owner_of

_MINUTE: Final = 60_000
_STEPS: Final = (1, 3, 5, 10, 30, 60)
"""Minutes by which a message is renewed, by how often it was renewed before."""
_AHEAD: Final = 10_000
_LONGEST: Final = 3 * 60 * _MINUTE
_MOST_FAILURES: Final = 3
_BUCKET: Final = 1000


class HandleOwner(NamedTuple):
    """Who received a message."""

    client_id: str
    group: str


Sharer = tuple[str, str]
"""The address and the client id to whose share a message counts."""


def sharer_of(caller: Caller) -> Sharer:
    """Return to whose share messages of a caller count: anybody may use another client's id."""
    return owner_of(caller.address), caller.client_id


class _Standing(Enum):
    KEPT = 1
    RELEASED = 2
    GONE = 3


class RenewedMessage:
    """A message that a client handles, and whose invisible time is extended meanwhile.

    Attributes:
        owner: who received it.
        given: the handle that the client has.
        delivery: the delivery, with the newest handle.
        reconsume_times: how many times the message was delivered before.
        since: when it was received.
    """

    __slots__ = (
        "_bucket",
        "_failures",
        "_renewals",
        "_state",
        "delivery",
        "given",
        "owner",
        "reconsume_times",
        "since",
    )

    def __init__(self, delivery: GroupDelivery, *, reconsume_times: int, since: int) -> None:
        self.owner = HandleOwner(delivery.caller.client_id, delivery.group)
        self.given, self.delivery = delivery.handle.text, delivery
        self.reconsume_times, self.since = reconsume_times, since
        self._renewals = self._failures = 0
        self._state, self._bucket = _Standing.KEPT, 0

    @property
    def handle(self) -> MessageHandle:
        """Return its newest handle."""
        return self.delivery.handle

    @property
    def message_id(self) -> str:
        """Return its id."""
        return self.delivery.message_id

    @property
    def is_kept(self) -> bool:
        """Return whether its client still handles it."""
        return self._state is _Standing.KEPT

    @property
    def is_gone(self) -> bool:
        """Return whether it left the table."""
        return self._state is _Standing.GONE

    @property
    def is_given_up(self) -> bool:
        """Return whether so many renewals failed that no more are tried."""
        return self._failures >= _MOST_FAILURES

    def is_too_old(self, now: int) -> bool:
        """Return whether its client has handled it for so long that it is not renewed any more."""
        return now - self.since >= _LONGEST

    @property
    def next_invisible(self) -> int:
        """Return the invisible time that the next renewal requests."""
        return _STEPS[min(self._renewals, len(_STEPS) - 1)] * _MINUTE

    def renewed(self, handle: MessageHandle) -> None:
        """Note the handle of a renewal."""
        self.delivery = self.delivery._replace(handle=handle)
        self._renewals, self._failures = self._renewals + 1, 0

    def failed(self) -> None:
        """Note that a renewal failed."""
        self._failures += 1

    def release(self) -> None:
        """Note that its client is done with it: it is not renewed any more."""
        if self._state is _Standing.KEPT:
            self._state = _Standing.RELEASED

    def remove(self) -> None:
        """Note that it left the table."""
        self._state = _Standing.GONE

    @property
    def bucket(self) -> int:
        """Return the second in which it is looked at next."""
        return self._bucket

    def put_in(self, bucket: int) -> None:
        """Set the second in which it is looked at next."""
        self._bucket = bucket


_Key = tuple[str, str]
"""Message id, and the handle that the client has."""


class RenewalTable:
    """All messages that are renewed.

    Args:
        most: the maximum number of messages.
        most_of_client: the maximum number of messages of one client.
    """

    def __init__(self, most: int = 200_000, most_of_client: int = 20_000) -> None:
        self._most, self._most_of_client = most, most_of_client
        self._owners: dict[HandleOwner, dict[_Key, RenewedMessage]] = {}
        self._of_client: dict[str, set[HandleOwner]] = {}
        self._shares: dict[Sharer, int] = {}
        self._buckets: dict[int, dict[RenewedMessage, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def has_room(self, sharer: Sharer, messages: int) -> bool:
        """Return whether so many messages could be added."""
        own = self._shares.get(sharer, 0)
        return self._count + messages <= self._most and own + messages <= self._most_of_client

    def count(self, sharer: Sharer, messages: int) -> None:
        """Count messages that are added, or for which room is reserved; or, if negative, that are
        gone.
        """
        self._count += messages
        now = self._shares.get(sharer, 0) + messages
        if now > 0:
            self._shares[sharer] = now
        else:
            self._shares.pop(sharer, None)

    def add(self, message: RenewedMessage) -> None:
        """Add a message that was received; the caller has checked that there is room."""
        owned = self._owners.setdefault(message.owner, {})
        key = message.message_id, message.given
        if key in owned:
            return
        owned[key] = message
        self._of_client.setdefault(message.owner.client_id, set()).add(message.owner)
        self.count(sharer_of(message.delivery.caller), 1)
        self._schedule(message, message.handle.visible_at - _AHEAD)

    def find(self, owner: HandleOwner, message_id: str, given: str) -> RenewedMessage | None:
        """Return the message for which a client has a handle."""
        return self._owners.get(owner, {}).get((message_id, given))

    def release(self, message: RenewedMessage) -> None:
        """Stop renewing a message; remember its newest handle until the message is visible again.

        A client that repeats a lost acknowledgement still has the first handle.
        """
        if not message.is_kept:
            return
        message.release()
        self._schedule(message, message.handle.visible_at)

    def remove(self, message: RenewedMessage) -> None:
        """Forget a message."""
        if message.is_gone:
            return
        message.remove()
        self._leave_bucket(message)
        self.count(sharer_of(message.delivery.caller), -1)
        owned, key = self._owners.get(message.owner, {}), (message.message_id, message.given)
        if owned.get(key) is not message:
            return  # Its client has ended.
        del owned[key]
        if not owned:
            self._forget(message.owner)

    def again(self, message: RenewedMessage, now: int) -> None:
        """Schedule a message after a renewal, or after one that failed."""
        if message.is_gone:
            return
        if message.is_kept:
            # A renewal that failed is repeated at the next opportunity.
            self._schedule(message, max(message.handle.visible_at - _AHEAD, now + _BUCKET))
        else:
            self._schedule(message, message.handle.visible_at)

    def take_due(self, now: int) -> Iterator[RenewedMessage]:
        """Yield the messages that are to be renewed now. Each is scheduled again by `again`.

        Released messages that are visible again are forgotten.
        """
        last = now // _BUCKET
        for bucket in sorted(number for number in self._buckets if number <= last):
            # The table may change while the caller handles a message.
            while (messages := self._buckets.get(bucket)) is not None:
                message = next(iter(messages))
                self._leave_bucket(message)
                if message.is_kept:
                    yield message
                else:
                    self.remove(message)

    def take_all(self, client_id: str) -> Iterator[RenewedMessage] | None:
        """Forget the messages of a client that has ended; None if it has no message.

        The iterator yields those that the client still handled, and must be exhausted.
        """
        owners = self._of_client.pop(client_id, None)
        if owners is None:
            return None
        return self._taken([self._owners.pop(owner) for owner in owners])

    def _taken(self, owned: list[dict[_Key, RenewedMessage]]) -> Iterator[RenewedMessage]:
        for messages in owned:
            for message in messages.values():
                is_kept = message.is_kept
                self.remove(message)
                if is_kept:
                    yield message

    def _forget(self, owner: HandleOwner) -> None:
        del self._owners[owner]
        others = self._of_client[owner.client_id]
        others.discard(owner)
        if not others:
            del self._of_client[owner.client_id]

    def _schedule(self, message: RenewedMessage, due: int) -> None:
        self._leave_bucket(message)
        bucket = -(-due // _BUCKET)
        message.put_in(bucket)
        self._buckets.setdefault(bucket, {})[message] = None

    def _leave_bucket(self, message: RenewedMessage) -> None:
        messages = self._buckets.get(message.bucket)
        if messages is not None and message in messages:
            del messages[message]
            if not messages:
                del self._buckets[message.bucket]
