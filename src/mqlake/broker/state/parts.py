"""What the request families of a broker share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from mqlake.broker.repeating import Repeating
from mqlake.broker.settings import BrokerSettings
from mqlake.broker.state.busy import Busy
from mqlake.broker.state.clients.clients import Clients
from mqlake.broker.state.empty_groups import EmptyGroups
from mqlake.broker.state.endings import AllEndings
from mqlake.broker.state.forwarding import Forwarder
from mqlake.broker.state.groups import Groups
from mqlake.broker.state.offsets.past_end import REPORT, PastEnd
from mqlake.broker.state.offsets.restarts import Restarts
from mqlake.broker.state.offsets.room import OffsetRoom
from mqlake.broker.state.queue_locks import QueueLocks
from mqlake.broker.state.registration.registration import Registration
from mqlake.broker.state.slave_refusals import SlaveRefusals
from mqlake.broker.state.static_topics import StaticTopics
from mqlake.broker.state.stats import LOOK, Stats
from mqlake.broker.state.topics import Topics
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Body
from mqlake.protocol.logic_queue_plans import MOST_QUEUES
from mqlake.remoting.shares import Shares
from mqlake.remoting.slices import Job, Slices
from mqlake.replication.replicas import Replicas
from mqlake.replication.replication import Replication
from mqlake.store.config.properties_file import PropertiesFile
from mqlake.store.live_settings import LiveSettings
from mqlake.store.port import Store


class Parts:
    """The parts of one running broker. It is created on the broker's event loop, once the store is
    open.

    Attributes:
        live: the settings, for those that subscribe to changes.
        settings: the current settings. Read them here each time: a change replaces them.
        store: messages, tables, and the operations on them.
        topics, groups: the broker's topics and groups.
        static_topics: the static topics whose logic queues this broker leads, or led.
        forwarder: requests stretches of logic queues from other brokers.
        clients: the connected producers and consumers, by group.
        past_end: corrects offsets past the end of their queue.
        empty_groups: removes consumer groups that hold nothing.
        offset_room: the limit of consumer offsets, and the shares of clients.
        clients_now: returns the time (ms since 1970) as clients name it in requests.
        locks: the queues that consumers lock to keep their order.
        replicas: the other brokers of this broker's name.
        refusals: the requests that this broker does not serve because it is a slave.
        names: the name servers with which topics are registered.
        busy: counts requests that were turned away.
        replication: copies the log to slaves, or from a master.
        stats: counts messages that were put, and that consumers got.
        repeating: the periodic functions.
        slices: runs long work, a slice at a time.
        endings: told of each topic and group that is deleted.
        settings_file: the file to which changed settings are written.
        followed: tables of families that a slave copies: the function that applies the parts of the
            master's table, by the request code.
        on_start: called, and awaited, once the broker listens.
        on_stop: called, and awaited, when the broker stops, before its connections are closed.
    """

    def __init__(
        self,
        live: LiveSettings[BrokerSettings],
        store: Store,
        settings_file: PropertiesFile,
    ) -> None:
        self.live, self.store, self.settings_file = live, store, settings_file
        self.slices = Slices(
            lambda: (self.settings.long_request_queue_capacity, "longRequestQueueCapacity"),
            lambda: self.settings.max_address_share,
        )
        self.repeating = Repeating(self.slices)
        self.endings = AllEndings()
        self.followed: dict[RequestCode, Callable[[Sequence[Body]], Job[None]]] = {}
        self.on_start: list[Callable[[], Awaitable[object]]] = []
        self.on_stop: list[Callable[[], Awaitable[object] | None]] = []
        self.topics = Topics(live, store.config.topics)
        self.static_topics = StaticTopics(
            live.now.broker_name, store.config.static_topics, MOST_QUEUES
        )
        self.forwarder = Forwarder(live)
        self.on_stop.append(self.forwarder.stop)
        self.groups = Groups(live, store.config.groups)
        self.busy = Busy()
        self.stats = Stats(
            store.queue_ends,
            store.dispatched_messages,
            store.clock.milliseconds,
            self.topics.queues,
            store.reads.stored_bytes,
        )
        self.repeating.every(LOOK, lambda: self.slices.start(self.stats.look()))
        self.endings.add(self.stats)
        self.clients = Clients(
            live, self.groups, self.slices, self.repeating, store.clock.milliseconds
        )
        self.past_end = PastEnd(live, store)
        self.repeating.every(REPORT, self.past_end.report)
        self.endings.add(Restarts(store.config.consumer_offsets))
        self.clients_now = store.clock.milliseconds
        self.empty_groups = EmptyGroups(
            live, store, self.groups, self.topics, self.clients, self.slices
        )
        self.empty_groups.start(self.repeating)
        self.offset_room = OffsetRoom(live, store.config.consumer_offsets, self.groups)
        self.locks = QueueLocks(
            lambda: int(store.clock.monotonic() * 1000),
            Shares(lambda: self.settings.max_address_share),
        )
        self.replicas = Replicas()
        self.refusals = SlaveRefusals(live, self.replicas)
        self.names = Registration(live, self.topics, self.static_topics, self.replicas, self.slices)
        self.replication = Replication(live, store, self.replicas)

    def poll_time_left(self, poll_time: int, born_time: int) -> int:
        """Return how long (ms) a request may still wait; below 0 if its time is over.

        Args:
            poll_time: how long (ms) the client waits.
            born_time: when it sent the request, by its own clock; 0 if it does not say.
        """
        return poll_time - (self.clients_now() - born_time if born_time else 0)

    @property
    def settings(self) -> BrokerSettings:
        """Return the current settings."""
        return self.live.now
