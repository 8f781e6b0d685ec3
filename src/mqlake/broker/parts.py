"""What the request families of a broker share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mqlake.broker.busy import Busy
from mqlake.broker.clients.clients import Clients
from mqlake.broker.groups import Groups
from mqlake.broker.locks.queue_locks import QueueLocks
from mqlake.broker.registration import Registration
from mqlake.broker.repeating import Repeating
from mqlake.broker.replicas import Replicas
from mqlake.broker.replication.replication import Replication
from mqlake.broker.settings import BrokerSettings
from mqlake.broker.static_topics.forwarding import Forwarder
from mqlake.broker.static_topics.mappings import StaticTopics
from mqlake.broker.stats import LOOK, Stats
from mqlake.broker.topics import MOST_QUEUES, Topics
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Body
from mqlake.remoting.slices import Job, Slices
from mqlake.store.config.properties_file import PropertiesFile
from mqlake.store.live_settings import LiveSettings
from mqlake.store.port import Store


class Parts:
    """The parts of one running broker. To be made on its event loop, once the store is open.

    Attributes:
        live: the settings, for those that subscribe to changes.
        settings: as they are now. Read them here each time: a change replaces them.
        store: messages, tables, and what is done with them.
        topics, groups: the broker's.
        static_topics: those whose logic queues this broker leads, or led.
        forwarder: asks other brokers for their stretches of logic queues.
        clients: who is connected: producers and consumers by group.
        locks: which consumers have queues for themselves, to keep their order.
        replicas: the others of this broker's name.
        names: the name servers that are told of the topics.
        busy: how often requests were turned away.
        replication: copies the log to slaves, or from a master.
        stats: what was put, and what consumers got.
        repeating: what is done by the clock.
        slices: what takes long is done here, a slice at a time.
        settings_file: what changes of settings are written to.
        followed: tables of families that a slave copies: what takes the master's answer, by the
            code of the request for it.
        on_stop: called, and awaited, when the broker stops, before its connections are closed.
    """

    def __init__(
        self,
        live: LiveSettings[BrokerSettings],
        store: Store,
        settings_file: PropertiesFile,
    ) -> None:
        self.live, self.store, self.settings_file = live, store, settings_file
        self.repeating = Repeating()
        self.slices = Slices(
            lambda: (self.settings.long_request_queue_capacity, "longRequestQueueCapacity")
        )
        self.followed: dict[RequestCode, Callable[[Body], Job[None]]] = {}
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
        self.clients = Clients(self)
        self.locks = QueueLocks(lambda: int(store.clock.monotonic() * 1000))
        self.replicas = Replicas()
        self.names = Registration(live, self.topics, self.static_topics, self.replicas, self.slices)
        self.replication = Replication(live, store, self.replicas)

    @property
    def settings(self) -> BrokerSettings:
        """Return the settings as they are now."""
        return self.live.now
