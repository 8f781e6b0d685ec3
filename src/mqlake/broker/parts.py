"""What the request families of a broker share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mqlake.broker.busy import Busy
from mqlake.broker.clients.clients import Clients
from mqlake.broker.groups import Groups
from mqlake.broker.locks.queue_locks import QueueLocks
from mqlake.broker.registration import Registration
from mqlake.broker.repeating import Repeating
from mqlake.broker.settings import BrokerSettings
from mqlake.broker.stats import LOOK, Stats
from mqlake.broker.topics import Topics
from mqlake.remoting.slices import Slices
from mqlake.store.message_store import MessageStore


class Parts:
    """The parts of one running broker. To be made on its event loop, once the store is open.

    Attributes:
        settings: read them here each time: a broker's settings may be changed while it runs.
        store: messages, tables, and what is done with them.
        topics, groups: the broker's.
        clients: who is connected: producers and consumers by group.
        locks: which consumers have queues for themselves, to keep their order.
        names: the name servers that are told of the topics.
        busy: how often requests were turned away.
        stats: what was put, and what consumers got.
        repeating: what is done by the clock.
        slices: what takes long is done here, a slice at a time.
        on_settings: called when settings were changed, for those that made something of them.
        on_stop: called, and awaited, when the broker stops, before its connections are closed.
    """

    def __init__(self, settings: BrokerSettings, store: MessageStore) -> None:
        self.settings, self.store = settings, store
        self.repeating = Repeating()
        self.slices = Slices(
            lambda: (settings.long_request_queue_capacity, "longRequestQueueCapacity")
        )
        self.on_settings: list[Callable[[], None]] = []
        self.on_stop: list[Callable[[], Awaitable[object] | None]] = []
        self.topics = Topics(settings, store.core.config.topics)
        self.groups = Groups(settings, store.core.config.groups)
        self.busy = Busy()
        core = store.core
        self.stats = Stats(
            lambda: core.offsets.table,
            lambda: core.dispatcher.count,
            core.clock.milliseconds,
            self.topics.queues,
        )
        self.repeating.every(LOOK, lambda: self.slices.start(self.stats.look()))
        self.clients = Clients(self)
        self.locks = QueueLocks(lambda: int(core.clock.monotonic() * 1000))
        self.names = Registration(settings, self.topics, self.slices)
