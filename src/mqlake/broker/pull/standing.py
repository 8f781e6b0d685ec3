"""Standing pulls: equal to an earlier pull in everything but the offsets.

A consumer of a backlog pulls the same queue again and again. Its first pull is checked. The
decision stands as long as everything that the checks read is still the same object: settings,
topic, group, subscription. Later pulls skip the checks, and are answered with the messages that
earlier reads have found ahead: by `PullRuns` once it knows their pattern, and until then here.
`PullRequests` serves all others.
"""

from __future__ import annotations

from time import perf_counter
from typing import Final, NamedTuple

from mqlake.broker.pull.answers import messages_template
from mqlake.broker.pull.checks import Allowed
from mqlake.broker.pull.reading import Found, PullRead
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.settings import BrokerSettings
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.clients.members import ConsumerGroup
from mqlake.broker.state.offsets.past_end import GroupQueue
from mqlake.client.cluster import MASTER
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import PERM_READ, Topic
from mqlake.protocol.bodies.heartbeat import Subscription
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command
from mqlake.protocol.headers.pull import COMMITS_OFFSET, HAS_SUBSCRIPTION, PullHeader
from mqlake.protocol.template import FrameTemplate
from mqlake.store.queues.queue_kind import kind_of
from mqlake.store.results import Status

_MOST: Final = 4096
"""Maximum number of stored decisions. Beyond it, all are dropped."""
_LONGEST_SUBSCRIPTION: Final = 256
"""Maximum characters of a subscription in a stored decision."""
_ALL: Final = (None, "", "*")
"""Expressions that match all messages."""

_Key = tuple[str, str, int, int, int, int, int | None, str | None, str | None, int]


class PullDecision(NamedTuple):
    """What the checks of a pull decided, and what they read.

    Attributes:
        members, subscription: None if the pull states its subscription.
    """

    settings: BrokerSettings
    topic: Topic
    group: SubscriptionGroup
    members: ConsumerGroup | None
    subscription: Subscription | None
    tags: str | None
    messages: int
    bytes: int
    template: FrameTemplate


class StandingPulls:
    """Serves pulls by decisions on earlier ones."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._reads = state, state.store.reads
        self._live, self._stats, self._clients = runtime.live, state.stats, state.clients
        self._topic, self._groups = state.topics.direct, state.groups
        self._offsets = state.store.config.consumer_offsets
        self._decided: dict[_Key, PullDecision] = {}

    def note(
        self, request: Command, header: PullHeader, allowed: Allowed, wanted: PullRead, found: Found
    ) -> None:
        """Store the decision on a served pull, if the queue has messages for another pull.

        The pull was checked in this step of the event loop, so the stored objects are those that
        the checks read. Never on slaves, and never for pulls that filter by tags or conditions.
        """
        settings, subscription, members = self._live.now, None, None
        if (
            found.status is not Status.FOUND
            or found.max_offset - found.next_offset < wanted.messages
            or request.code != RequestCode.PULL_MESSAGE
            or allowed.choice.condition is not None
            or allowed.choice.tags not in _ALL
            or kind_of(allowed.topic).has_batches
            or settings.is_slave
            or settings.slave_read_enable
            or settings.reject_pull_consumer_enable
            or self._topic(header.topic) is not allowed.topic
            or len(header.subscription or "") > _LONGEST_SUBSCRIPTION
        ):
            return
        if not header.sys_flag & HAS_SUBSCRIPTION:
            members = self._clients.consumers.get(header.consumer_group)
            subscription = members.subscriptions.get(header.topic) if members else None
            if subscription is None:
                return
        if len(self._decided) >= _MOST:
            self._decided.clear()
        self._decided[_key(request, header)] = PullDecision(
            settings,
            allowed.topic,
            allowed.group,
            members,
            subscription,
            allowed.choice.tags,
            wanted.messages,
            wanted.bytes,
            messages_template(
                request.serialization, Status.FOUND.value, allowed.topic, allowed.group, MASTER
            ),
        )

    def serve(self, request: Command, header: PullHeader) -> bytes | None:
        """Return the response to a standing pull, or None if the pull must be checked."""
        if request.code != RequestCode.PULL_MESSAGE:
            return None
        key = _key(request, header)
        decided = self._decided.get(key)
        if decided is None:
            return None
        group, topic, queue_id = header.consumer_group, header.topic, header.queue_id
        if not self.stands(decided, topic, group) or self._offsets.has_reset(
            group, topic, queue_id
        ):
            del self._decided[key]
            return None
        begin = perf_counter()
        found = self._reads.copied(
            topic, queue_id, header.queue_offset, decided.messages, decided.bytes, decided.tags
        )
        if found is None:
            del self._decided[key]
            return None
        self._stats.get_times.add(perf_counter() - begin)
        data, messages, following, low, high = found
        commit = header.commit_offset if header.sys_flag & COMMITS_OFFSET else None
        self.commit(group, topic, queue_id, commit, following)
        size = len(data)
        self._stats.got(group, topic, messages, size)
        head = decided.template.fill(following, low, high, request.opaque, body=size)
        return b"".join((head, data))

    def decision(self, request: Command, header: PullHeader) -> PullDecision | None:
        """Return the decision on pulls like this one, if there is one that stands."""
        if request.code != RequestCode.PULL_MESSAGE:
            return None
        decided = self._decided.get(_key(request, header))
        if decided is None or not self.stands(decided, header.topic, header.consumer_group):
            return None
        return decided

    def commit(
        self, group: str, topic: str, queue_id: int, commit: int | None, following: int
    ) -> None:
        """Commit the offset that a pull brings, if it brings one, and note how far it has pulled.

        Neither is done without room for it.
        """
        offsets, state, room = self._offsets, self._state, self._state.offset_room
        has_both = room.has_room(group, 2)
        if commit is not None and commit > following:
            refuses = state.past_end.refuses(GroupQueue(group, topic, queue_id), commit)
            commit = None if refuses else commit
        if commit is not None and (
            has_both or room.has_room(group) or offsets.has(group, topic, queue_id)
        ):
            offsets.commit(group, topic, queue_id, commit)
        if has_both or room.has_room(group) or offsets.has_pull(group, topic, queue_id):
            offsets.commit_pull(group, topic, queue_id, following)

    def stands(self, decided: PullDecision, topic: str, group: str) -> bool:
        """Return whether everything that a decision's checks have read is still the same."""
        if (
            self._live.now is not decided.settings
            or self._topic(topic) is not decided.topic
            or self._groups.get(group) is not decided.group
        ):
            return False
        members = decided.members
        return members is None or (
            self._clients.consumers.get(group) is members
            and members.subscriptions.get(topic) is decided.subscription
            and not members.is_broadcasting
            and not self._groups.forbidden(group, topic) & PERM_READ
        )


def _key(request: Command, header: PullHeader) -> _Key:
    """Return everything that a decision and its answers depend on, except the offsets."""
    return (
        header.topic,
        header.consumer_group,
        header.queue_id,
        header.max_msg_nums,
        header.sys_flag,
        header.sub_version,
        header.max_msg_bytes,
        header.subscription,
        header.expression_type,
        request.serialization,
    )
