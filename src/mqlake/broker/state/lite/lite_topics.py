"""The lite topics of a broker: what all requests about them share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.settings import BrokerSettings
from mqlake.broker.state.groups import Groups
from mqlake.broker.state.lite.events import LiteEvents
from mqlake.broker.state.lite.held import HeldLite, LiteKey
from mqlake.broker.state.lite.names import (
    LiteGroup,
    expiration,
    is_lite_topic,
    is_parent,
    lite_topic_of,
    parent_of,
    queue_name,
)
from mqlake.broker.state.lite.queues import LiteQueues, NextOffset
from mqlake.broker.state.lite.room import LiteTopicRoom
from mqlake.broker.state.lite.sent_properties import place, typical_lite_topic, waits_by
from mqlake.broker.state.lite.subscriptions import LiteSubscription, LiteSubscriptions, new_queues
from mqlake.broker.state.offsets.room import OffsetRoom
from mqlake.broker.state.topics import BrokerTopics
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import Topic
from mqlake.formats.properties import (
    LITE_TOPIC,
    decode_properties,
)
from mqlake.formats.topic_names import OF_GROUPS
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import oneway
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.lite import NotifyUnsubscribeLiteHeader
from mqlake.remoting.connection import Peer
from mqlake.remoting.shares import owner_of
from mqlake.remoting.slices import Job
from mqlake.store.port import Store

_LOOK: Final = 10.0
_EXPIRY: Final = 120.0
_LEAST_AGE: Final = 15 * 60 * 1000
"""Milliseconds for which a lite topic stays in any case."""
_RECENT: Final = 32
"""Messages at which a group without an offset begins, at most so many before the newest one."""


class LiteTopics:
    """The lite topics of one broker.

    Attributes:
        queues: their messages.
        room, subscriptions, events, held: see there.
    """

    def __init__(
        self,
        store: Store,
        runtime: BrokerRuntime,
        topics: BrokerTopics,
        groups: Groups,
        room: OffsetRoom,
    ) -> None:
        self._store, self._runtime = store, runtime
        self._topics, self._groups, self._room = topics, groups, room
        self._now = store.clock.milliseconds
        self._offsets = store.config.consumer_offsets
        self.queues = LiteQueues(store)
        percent = lambda: runtime.settings.max_address_share  # noqa: E731
        self.subscriptions = LiteSubscriptions(
            lambda: runtime.settings.max_lite_subscription_count, percent
        )
        self._wake: Callable[[str], object] = lambda _: None
        self.events = LiteEvents(
            self.subscriptions,
            lambda group: self.group(group).most_events,
            self.has_more,
            self._woken,
            self._now,
        )
        self.held = HeldLite(self._now, lambda key: self.events.note(key[1], key[0]))
        self.room = LiteTopicRoom(store, runtime)
        runtime.on_stop.append(self._stop)
        if store.light is not None:
            store.light.notify(self._messages_arrived)
            runtime.repeating.every_job(_LOOK, self._look)
            runtime.repeating.every_job(_EXPIRY, self._expire)

    def _messages_arrived(self, names: Iterator[bytes]) -> None:
        if self.subscriptions.count:
            for name in names:
                self.events.note(name.decode())

    async def _stop(self) -> None:
        self.held.stop()

    def _woken(self, client_id: str) -> None:
        self._wake(client_id)

    def wake_by(self, wake: Callable[[str], object]) -> None:
        """Call a function with each client for which there is something new."""
        self._wake = wake

    @property
    def settings(self) -> BrokerSettings:
        return self._runtime.settings

    def group(self, name: str) -> LiteGroup:
        """Return what a group's attributes say; those of an unknown group say nothing."""
        return LiteGroup.of(self._groups.get(name) or SubscriptionGroup())

    def parents(self) -> Job[list[Topic]]:
        """Return the topics that have lite topics."""
        found: list[Topic] = []
        for name in list(self._topics):
            topic = self._topics.get(name)
            if topic is not None and is_parent(topic):
                found.append(topic)
            yield
        return found

    # Sends

    def queue_of(self, topic: Topic, properties: bytes) -> str | None:
        """Return the queue of the lite topic that a message is sent to; None if it is sent to none.

        Raises:
            RemotingError: it cannot be put.
        """
        lite = typical_lite_topic(properties)
        is_typical = lite is not None
        pairs = {} if is_typical else decode_properties(properties)
        lite = pairs.get(LITE_TOPIC) if lite is None else lite
        if lite is None or topic.topic_name.startswith(OF_GROUPS):
            return None
        if not (is_typical or is_lite_topic(lite)):
            reason = f"not the name of a lite topic: {lite[:100]!r}; use letters, digits, - and _"
            raise RemotingError(ResponseCode.MESSAGE_ILLEGAL, reason)
        if self._store.light is None:
            reason = "this broker has no lite topics: set enableLmq=true, and restart it"
            raise RemotingError(ResponseCode.MESSAGE_ILLEGAL, f"{reason} (docs/lite-topics.md)")
        if not is_typical and (waits := waits_by(pairs)) is not None:
            reason = f"a message of a lite topic can have no delay and no transaction: {waits}"
            raise RemotingError(ResponseCode.MESSAGE_ILLEGAL, reason)
        return queue_name(topic.topic_name, lite)

    def next_place(self, topic: Topic, queue: str, peer: Peer) -> bytes:
        """Return the properties with the place of the next message of a queue, which is put now.

        Raises:
            RemotingError: there are too many lite topics.
        """
        name, queues = topic.topic_name, self.queues
        found = self._counted(peer, lambda check: queues.take_offset(name, queue, check))
        return place(queue, found.offset)

    def expect(self, queue: str, name_hash: int, peer: Peer, put_end: int) -> None:
        """Let the table of `LiteQueues.next_offsets` have a queue, to which a message is sent.

        Args:
            put_end: see `LiteQueues.next_offset`.

        Raises:
            RemotingError: there are too many lite topics.
        """
        topic, queues = parent_of(queue), self.queues
        self._counted(
            peer, lambda check: queues.next_offset(topic, queue, name_hash, check, put_end)
        )

    def _counted(
        self, peer: Peer, find: Callable[[Callable[[], object]], NextOffset]
    ) -> NextOffset:
        """Return a next offset; if it is the first of a lite topic, count the topic for a client.

        Args:
            find: finds it; it is given what checks whether there may be another lite topic.
        """
        owner = owner_of(peer.address)
        found = find(lambda: self.room.check(owner))
        if found.is_first:
            self.room.add(owner)
        return found

    # Subscriptions

    def subscribe(
        self, client: LiteSubscription, names: Sequence[str], begin: Callable[[str], int | None]
    ) -> None:
        """Subscribe a client to more lite topics.

        Args:
            begin: returns where the group continues in a queue; None for where it is.

        Raises:
            RemotingError: a limit is reached.
        """
        group, more = self.group(client.group), new_queues(client, names)
        self._check_quota(client, len(more))
        for queue in names:
            if group.is_exclusive:
                self._evict(client, queue, group)
            if (offset := begin(queue)) is not None:
                self.reset(client.group, queue, offset)
            self._add(client, queue)

    def _check_quota(self, client: LiteSubscription, more: int) -> None:
        refusal = self.subscriptions.refusal(client, more) if more else None
        if refusal is not None:
            raise RemotingError(ResponseCode.LITE_SUBSCRIPTION_QUOTA_EXCEEDED, refusal)

    def _add(self, client: LiteSubscription, queue: str) -> None:
        if self.subscriptions.add(client, queue) and self.has_more(client.group, queue):
            self.events.note(queue, client.group)

    def replace(self, client: LiteSubscription, names: Sequence[str]) -> Job[None]:
        """Let a client be subscribed to exactly these lite topics.

        Raises:
            RemotingError: a limit is reached; the others are subscribed.
        """
        wanted = dict.fromkeys(names)
        for queue in list(client.queues):
            if queue not in wanted:
                self.subscriptions.remove(client, queue)
                yield
        more = new_queues(client, names)
        if self.group(client.group).is_exclusive:
            # Another client has taken over the others since.
            more = [queue for queue in more if not self._others(client, queue)]
        self._check_quota(client, len(more))
        for queue in more:
            self._add(client, queue)
            yield

    def unsubscribe(self, client: LiteSubscription, names: Sequence[str]) -> None:
        """End subscriptions of a client."""
        resets = self.group(client.group).resets_unsubscribed
        for queue in names:
            if self.subscriptions.remove(client, queue) and resets:
                self.reset(client.group, queue, 0)

    def leave(self, client_id: str) -> None:
        """End all subscriptions of a client; other clients get what was noted for it."""
        client = self.subscriptions.remove_client(client_id)
        for queue in self.events.forget(client_id):
            self.events.note(queue, client.group if client is not None else None)

    def _others(self, client: LiteSubscription, queue: str) -> list[LiteSubscription]:
        found = self.subscriptions.subscribers(queue, client.group)
        return [each for each in found if each is not client]

    def _evict(self, client: LiteSubscription, queue: str, group: LiteGroup) -> None:
        for other in self._others(client, queue):
            self.subscriptions.remove(other, queue)
            self._tell(other, queue)
            if group.resets_exclusive:
                self.reset(other.group, queue, 0)

    def _tell(self, client: LiteSubscription, queue: str) -> None:
        """Tell a client that it is no longer subscribed to a lite topic."""
        header = NotifyUnsubscribeLiteHeader(
            lite_topic=lite_topic_of(queue),
            consumer_group=client.group,
            client_id=client.client_id,
        )
        client.peer.send(oneway(RequestCode.NOTIFY_UNSUBSCRIBE_LITE, header))

    # Offsets

    def reset(self, group: str, queue: str, offset: int) -> None:
        """Make a group continue at an offset of a lite topic."""
        if self._offsets.query(group, queue, 0) != offset:
            self._check_offset_room(group, queue)
            self._offsets.reset(group, queue, 0, offset)
            self.held.forget((group, queue))

    def _check_offset_room(self, group: str, queue: str) -> None:
        if not self._offsets.has(group, queue, 0):
            self._room.check(group, queue)

    def commit(self, group: str, queue: str, offset: int) -> None:
        """Note how far a group has consumed a lite topic.

        Raises:
            RemotingError: no more offsets may be stored.
        """
        if not self._offsets.has_reset(group, queue, 0):
            self._check_offset_room(group, queue)
            self._offsets.commit(group, queue, 0, offset)

    def begin_of(self, group: str, queue: str) -> int:
        """Return where a group pops a lite topic next; a reset is applied."""
        reset = self._offsets.take_reset(group, queue, 0)
        if reset is not None:
            self.held.forget((group, queue))
            self.commit(group, queue, reset)
            return reset
        known = self._offsets.query(group, queue, 0)
        if known is None:
            known = self._first_offset(queue)
            self.commit(group, queue, known)
        return known

    def _first_offset(self, queue: str) -> int:
        """Return where a group without an offset begins: at the oldest of the recent messages.

        Messages before a pause in which the lite topic expired belong to an earlier one.
        """
        topic = parent_of(queue)
        high = self.queues.max_offset(topic, queue)
        settings = self._topics.get(topic)
        longest = expiration(settings) if settings is not None else 0
        offset = max(0, high - _RECENT)
        if not longest:
            return offset
        following = self._now()
        for at in range(high - 1, offset - 1, -1):
            stored = self.queues.timestamp(topic, queue, at)
            if stored >= 0 and following - stored > max(longest, _LEAST_AGE):
                return at + 1
            following = stored if stored >= 0 else following
        return offset

    def has_more(self, group: str, queue: str) -> bool:
        """Return whether a lite topic has a message that a group has not consumed."""
        high = self.queues.max_offset(parent_of(queue), queue)
        known = self._offsets.query(group, queue, 0)
        return high > (known or 0) or (known is not None and known > high > 0)

    # Time

    def _look(self) -> Job[None]:
        for client_id in (yield from self.subscriptions.silent(self._now())):
            self.leave(client_id)
            yield
        for client_id in self.events.incomplete():
            yield from self.events.complete(client_id)

    def _expire(self) -> Job[None]:
        """Forget what groups know of expired lite topics."""
        self.room.look_again()
        if self._runtime.settings.is_slave:
            return
        for topic in (yield from self.parents()):
            longest = expiration(topic)
            if not longest:
                continue
            oldest = self._now() - max(longest, _LEAST_AGE)
            for found in self.queues.newest(topic.topic_name):
                if found is not None and found[1] < oldest:
                    self._end(found[0])
                yield

    def _end(self, queue: str) -> None:
        for group in self._offsets.groups_of(queue):
            self._offsets.remove(group, queue)
            self.held.forget((group, queue))
        for client in self.subscriptions.remove_queue(queue):
            self._tell(client, queue)

    def is_expired(self, topic: Topic, queue: str) -> bool:
        """Return whether a lite topic has expired."""
        longest = expiration(topic)
        if not longest:
            return False
        stored = self.queues.last_timestamp(topic.topic_name, queue)
        return stored >= 0 and self._now() - stored > max(longest, _LEAST_AGE)

    # Endings

    def topic_ended(self, topic: str) -> Job[None]:
        """Forget the lite topics of a topic."""
        self.room.look_again()
        self.queues.forget(topic)
        yield from self._forget(lambda key: parent_of(key[1]) == topic)
        for client_id in (yield from self.subscriptions.end(lambda each: each.topic == topic)):
            self.events.forget(client_id)
        prefix = queue_name(topic, "")
        for group in list(self._groups):
            for name in self._offsets.topics_of(group):
                if name.startswith(prefix):
                    self._offsets.remove(group, name)
            yield

    def group_ended(self, group: str) -> Job[None]:
        """Forget a group's subscriptions to lite topics."""
        yield from self._forget(lambda key: key[0] == group)
        for client_id in (yield from self.subscriptions.end(lambda each: each.group == group)):
            self.events.forget(client_id)

    def _forget(self, has_ended: Callable[[LiteKey], bool]) -> Job[None]:
        for key in self.held.held():
            if has_ended(key):
                self.held.forget(key)
            yield
