"""The topics of a broker: those that it creates itself, and those that producers create.

Upstream: `TopicConfigManager`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager

import msgspec

from mqlake.broker.settings import BrokerSettings
from mqlake.broker.state.creators import Creators
from mqlake.formats.config import DataVersion
from mqlake.formats.config.topics import PERM_INHERIT, PERM_READ, PERM_WRITE, Topic
from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.formats.topic_names import HALF_TOPIC, OP_TOPIC, TIMER_TOPIC
from mqlake.protocol import naming
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.logic_queues.plans import MOST_QUEUES
from mqlake.remoting.slices import Job, sort
from mqlake.store.config.config_entries import TopicTable
from mqlake.store.live_settings import Current

READ_WRITE = PERM_READ | PERM_WRITE
UNIT = 1
UNIT_SUBSCRIPTION = 2

_BENCHMARK_QUEUES = 1024
_SCHEDULE_QUEUES = 18

_OF_OWN_TOPICS = (
    "auto_create_topic_enable",
    "default_topic_queue_nums",
    "cluster_topic_enable",
    "broker_topic_enable",
    "trace_topic_enable",
    "broker_role",
)
"""The settings that `_own_topics` reads and that may change."""

_log = logging.getLogger(__name__)


def any_queue(count: int) -> int:
    """Return the id of one of so many queues."""
    return random.randrange(count)  # noqa: S311


class BrokerTopics:
    """The topics of one broker. Every change is stored, and registered with the name servers.

    Args:
        on_change: called after each change, with the name of the topic; None if several, or what
            belongs to them, may have changed.
        creators: limits what addresses and users create.
        translated: the topics whose requests are translated before a family receives them.

    Attributes:
        get: returns a topic by name, None if it does not exist.
        on_move: called with the name of a topic whose queues may have moved to other brokers:
            requests for it that wait are to be answered now.
    """

    def __init__(
        self,
        settings: Current[BrokerSettings],
        table: TopicTable,
        on_change: Callable[[str | None], None],
        creators: Creators,
        translated: Container[str] = frozenset(),
    ) -> None:
        self._creators = creators
        self._settings, self._table, self._on_change = settings, table, on_change
        self.get, self._translated = table.get, translated
        self.on_move: list[Callable[[str], object]] = []
        self._being_deleted: set[str] = set()
        self._own = list(_own_topics(settings.now))
        self._system = _system(self._own)
        if not settings.now.is_slave:  # A slave's topics are its master's.
            for topic in self._own:
                if topic.topic_name not in table:
                    table.put(topic)
        settings.on_change(self._update_own, *_OF_OWN_TOPICS)
        for topic in [topic for name in table if (topic := table.get(name)) is not None]:
            if (bounded := _bounded(topic)) != topic:
                _log.warning(
                    "topic %s: config/topics.json says %d queues to read, %d to write: it has %d, "
                    "%d, since a topic has %d at most",
                    topic.topic_name,
                    topic.read_queue_nums,
                    topic.write_queue_nums,
                    bounded.read_queue_nums,
                    bounded.write_queue_nums,
                    MOST_QUEUES,
                )
                table.put(bounded)

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __contains__(self, name: object) -> bool:
        return name in self._table

    @property
    def version(self) -> DataVersion:
        """How often the topics were changed, and when they were changed last."""
        return self._table.version

    def direct(self, name: str) -> Topic | None:
        """Return a topic whose requests may be served from their frames, as they arrived.

        None if the topic does not exist, or its requests must be translated first.
        """
        return None if name in self._translated else self.get(name)

    def moved(self, name: str) -> None:
        """Tell the families that the queues of a topic may have moved to other brokers."""
        for function in self.on_move:
            function(name)

    def system_names(self) -> Job[list[str]]:
        """Return the names of the broker's own topics, including those that were never created."""
        found = set(self._system)
        for name in list(self):
            if self.is_system(name):
                found.add(name)
            yield
        return (yield from sort(found))

    def is_system(self, name: str) -> bool:
        """Return whether a topic is the broker's own."""
        return name in self._system or name.startswith(naming.SYSTEM_PREFIX)

    def _update_own(self) -> None:
        """Create the topics that the settings now require; update what they determine in others."""
        before = {topic.topic_name: topic for topic in self._own}
        self._own = list(_own_topics(self._settings.now))
        self._system = _system(self._own)
        if self._settings.now.is_slave:
            return
        for topic in self._own:
            found, old = self.get(topic.topic_name), before.get(topic.topic_name)
            if found is None:
                self.put(topic)
            elif old is not None and old != topic:
                # Other settings that an administrator changed stay.
                self.put(msgspec.structs.replace(found, **_changes(old, topic)))

    def queues(self, name: str) -> int:
        """Return the number of a topic's queues, to read or to write; 0 if it does not exist."""
        topic = self.get(name)
        return max(topic.read_queue_nums, topic.write_queue_nums) if topic else 0

    def check_room(self, name: str, producer: str = "") -> None:
        """Refuse a topic that would exceed the limit, or that is being deleted.

        Args:
            producer: the "host:port" of the client that creates it by a send.

        Raises:
            RemotingError: there are `maxTopicNums` already, and this is not one of them; the client
                has created its share, or as many as its address or user may; or the topic's files
                are being deleted.
        """
        self._check_deleted(name)
        if name in self._table:
            return
        most, used, refusal = self._settings.now.max_topic_nums, len(self._table), None
        if producer:
            self._creators.check(producer)
            refusal = self._creators.refusal(producer, used, most, "maxTopicNums")
        elif used >= most:
            refusal = f"there are {used} already, and the maximum is {most} (maxTopicNums)"
        if refusal is not None:
            reason = f"topic[{name}] is not created: {refusal}; delete topics, or raise the setting"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)

    @contextmanager
    def deleting(self, name: str) -> Generator[None]:
        """Prevent the creation of a topic whose files are being deleted, until the block ends.

        Messages that are put to it meanwhile might be deleted, too.

        Raises:
            RemotingError: the topic is being deleted already.
        """
        self._check_deleted(name)
        self._being_deleted.add(name)
        try:
            yield
        finally:
            self._being_deleted.discard(name)

    def is_being_deleted(self, name: str) -> bool:
        """Return whether the files of a topic are being deleted."""
        return name in self._being_deleted

    def _check_deleted(self, name: str) -> None:
        if self.is_being_deleted(name):
            reason = f"topic[{name}] is being deleted; try again later"
            raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)

    def put(self, topic: Topic) -> None:
        """Create or change a topic."""
        self._table.put(topic)
        self._on_change(topic.topic_name)

    def follow(self, topics: Mapping[str, Topic], version: DataVersion) -> Job[None]:
        """Replace all topics, and their version, by those of a master, a bit at a time."""
        bounded: dict[str, Topic] = {}
        for name, topic in topics.items():
            bounded[name] = _bounded(topic)
            yield
        yield from self._table.follow(bounded, version)
        self._on_change(None)
        yield from self._creators.keep(bounded)

    def count_change(self) -> None:
        """Count a change of what is registered in addition to the topics, and register it."""
        self._table.count_change()
        self._on_change(None)

    def begin_term(self, number: int) -> None:
        """Let name servers take this broker's topics for later than those of earlier masters."""
        self._table.begin_state(number)
        self._on_change(None)

    def remove(self, name: str) -> bool:
        """Remove a topic; return whether it existed."""
        was_there = self._table.remove(name)
        self._creators.remove(name)
        if was_there:
            self._on_change(name)
        return was_there

    def make_for_send(
        self, name: str, default_topic: str, queues: int, sys_flag: int, producer: str
    ) -> Topic | None:
        """Return a topic; if it does not exist, create it from a default topic.

        Upstream: `createTopicInSendMessageMethod`. None if the default topic is missing, or is not
        there to inherit from (PERM_INHERIT).

        Args:
            default_topic: the topic that the producer names; TBW102 by default.
            queues: the number of queues that the producer requests; the default topic's is the
                maximum.
            sys_flag: UNIT bits.
            producer: its "host:port", to whose share the topic counts.

        Raises:
            RemotingError: there are too many topics.
        """
        found = self.get(name)
        if found is not None:
            return found
        default = self.get(default_topic)
        is_closed = (
            default_topic == naming.AUTO_CREATE_TOPIC
            and not self._settings.now.auto_create_topic_enable
        )
        if default is None or is_closed or not default.perm & PERM_INHERIT:
            _log.warning(
                "topic %s is not created for %s: %s cannot be its default topic",
                name,
                producer,
                default_topic,
            )
            return None
        self.check_room(name, producer)
        queues = max(0, min(queues, default.write_queue_nums))
        topic = Topic(
            topic_name=name,
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=default.perm & ~PERM_INHERIT,
            topic_filter_type=default.topic_filter_type,
            topic_sys_flag=sys_flag,
        )
        _log.info("topic %s is created by producer %s, with %d queues", name, producer, queues)
        self.put(topic)
        self._creators.add(name, producer)
        return topic

    def make(
        self,
        name: str,
        queues: int,
        perm: int = READ_WRITE,
        sys_flag: int = 0,
        *,
        order: bool = False,
        client: str = "",
    ) -> Topic:
        """Return a topic; if it does not exist, create it with these settings.

        Upstream: `createTopicInSendMessageBackMethod`, for retry and dead-letter topics.

        Args:
            client: the "host:port" of the client to whose share a created topic counts; "" if it
                counts to nobody's.

        Raises:
            RemotingError: the topic's files are being deleted.
        """
        self._check_deleted(name)
        found = self.get(name)
        if found is None:
            found = Topic(
                topic_name=name,
                read_queue_nums=queues,
                write_queue_nums=queues,
                perm=perm,
                topic_sys_flag=sys_flag,
                order=order,
            )
            self.put(found)
            if client:
                self._creators.add(name, client)
        elif found.order != order:
            found = msgspec.structs.replace(found, order=order)
            self.put(found)
        return found

    def add_queues(self, topic: Topic, queues: int) -> Topic:
        """Return a topic that has at least so many queues to read and to write.

        The number of queues never decreases here: nobody would read the messages of the others.
        """
        read, write = topic.read_queue_nums, topic.write_queue_nums
        if queues <= min(read, write):
            return topic
        raised = msgspec.structs.replace(
            topic, read_queue_nums=max(read, queues), write_queue_nums=max(write, queues)
        )
        _log.info("topic %s gets %d queues", topic.topic_name, queues)
        self.put(raised)
        return raised


def without_topic(topics: BrokerTopics, names: Iterable[str]) -> list[str]:
    """Return which names of topics with queue files have no topic configuration.

    A topic that a send creates is stored a moment later; a process that is killed in between leaves
    messages that nobody would find.
    """
    return [
        name
        for name in names
        if name not in topics and not topics.is_system(name) and naming.topic_fault(name) is None
    ]


def queues_for(name: str, ids: Iterable[int], least: int) -> int:
    """Return how many queues a topic needs so that it has those with files.

    Args:
        least: minimum number of queues of producers' topics; those of groups keep theirs.
    """
    found = max(ids, default=-1) + 1
    is_of_group = name.startswith((naming.RETRY_PREFIX, naming.DLQ_PREFIX))
    return found if is_of_group else max(found, least)


def _bounded(topic: Topic) -> Topic:
    """Return a topic with no more queues than can be handled."""
    read, write = (
        max(0, min(count, MOST_QUEUES)) for count in (topic.read_queue_nums, topic.write_queue_nums)
    )
    if (read, write) == (topic.read_queue_nums, topic.write_queue_nums):
        return topic
    return msgspec.structs.replace(topic, read_queue_nums=read, write_queue_nums=write)


def _own_topics(settings: BrokerSettings) -> Iterator[Topic]:
    cluster, broker = settings.broker_cluster_name, settings.broker_name
    if settings.auto_create_topic_enable:
        queues = settings.default_topic_queue_nums
        yield _topic(naming.AUTO_CREATE_TOPIC, queues, READ_WRITE | PERM_INHERIT)
    yield _topic(naming.SELF_TEST_TOPIC, 1)
    yield _topic(naming.BENCHMARK_TOPIC, _BENCHMARK_QUEUES)
    yield _topic(cluster, 16, PERM_INHERIT | (READ_WRITE if settings.cluster_topic_enable else 0))
    yield _topic(broker, 1, PERM_INHERIT | (READ_WRITE if settings.broker_topic_enable else 0))
    yield _topic(naming.OFFSET_MOVED_TOPIC, 1)
    yield _topic(SCHEDULE_TOPIC, _SCHEDULE_QUEUES)
    if settings.trace_topic_enable:
        yield _topic(settings.msg_trace_topic_name, 1)
    yield _topic(cluster + naming.REPLY_SUFFIX, 1)
    yield _topic(naming.REVIVE_PREFIX + cluster, settings.revive_queue_num)
    yield _topic(naming.MEMBER_GROUP_PREFIX + broker, 1, PERM_INHERIT)
    yield _topic(HALF_TOPIC, 1)
    yield _topic(OP_TOPIC, 1)
    if settings.timer_wheel_enable:
        yield _topic(TIMER_TOPIC, 1)


def _changes(old: Topic, new: Topic) -> dict[str, object]:
    values = msgspec.structs.asdict(new)
    return {name: value for name, value in values.items() if value != getattr(old, name)}


def _system(own: Iterable[Topic]) -> frozenset[str]:
    return naming.SYSTEM_TOPICS | {topic.topic_name for topic in own}


def _topic(name: str, queues: int, perm: int = READ_WRITE) -> Topic:
    return Topic(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=perm)
