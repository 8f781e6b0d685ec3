"""What a broker knows: its store, and what it keeps in memory beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mqlake.auth.access import Access
from mqlake.auth.authorization import Scope
from mqlake.auth.plain.access import LOOK as LOOK_AT_ACL
from mqlake.auth.plain.access import PlainAccess
from mqlake.auth.rules import BROKER
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.busy import Busy
from mqlake.broker.state.client_clock import ClientClock
from mqlake.broker.state.clients.clients import Clients
from mqlake.broker.state.controllers import Controllers
from mqlake.broker.state.creation_times import CreationTimes
from mqlake.broker.state.creators import GROUPS, TOPICS, CreationLimits, Creators
from mqlake.broker.state.empty_groups import EmptyGroups
from mqlake.broker.state.endings import AllEndings, EndedSamples
from mqlake.broker.state.forwarding import Forwarder
from mqlake.broker.state.groups import Groups
from mqlake.broker.state.lite.lite_topics import LiteTopics
from mqlake.broker.state.message_topics import MessageTopics
from mqlake.broker.state.offsets.past_end import REPORT, PastEnd
from mqlake.broker.state.offsets.restarts import Restarts
from mqlake.broker.state.offsets.room import OffsetRoom
from mqlake.broker.state.pop_counts import PopCounts
from mqlake.broker.state.queue_locks import QueueLocks
from mqlake.broker.state.registration.registration import Registration
from mqlake.broker.state.slave_refusals import SlaveRefusals
from mqlake.broker.state.static_topics import StaticTopics
from mqlake.broker.state.stats import LOOK, Stats
from mqlake.broker.state.topics import BrokerTopics
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Body
from mqlake.protocol.logic_queues.plans import MOST_QUEUES
from mqlake.remoting.quotas.quotas import Quotas
from mqlake.remoting.shares import Shares
from mqlake.remoting.slices import Job
from mqlake.replication.replicas import Replicas
from mqlake.replication.replication import Replication
from mqlake.store.port import Store


class BrokerState:
    """The state of one broker, which its request families read and change.

    Args:
        client_time: returns the time (ms since 1970) as clients state it in their requests; by
            default, the time of the store's clock.
        cut: called with a physical offset from which on this log differs from that of its group
            under a controller.

    Attributes:
        store: messages, tables, and the operations on them.
        topics, groups: the broker's topics and groups.
        static_topics: the static topics whose logic queues this broker leads, or led.
        forwarder: requests stretches of logic queues from other brokers.
        clients: the connected producers and consumers, by group.
        client_clock: measures how old requests are.
        past_end: corrects offsets past the end of their queue.
        empty_groups: removes consumer groups that hold nothing.
        offset_room: the limit of consumer offsets, and the shares of clients.
        lite: the lite topics: their queues, subscriptions, and what is popped of them.
        locks: the queues that consumers lock to keep their order.
        replicas: the other brokers of this broker's name.
        controllers: those that decide this broker's role; None without a controller.
        replication: copies the log to slaves, or from a master.
        quotas: what one address, and one user, may use of this broker.
        access: who may make which request.
        refusals: the requests that this broker does not serve because it is a slave.
        names: the name servers with which topics are registered.
        busy: counts requests that were turned away.
        creation_times: how long requests that create topics and groups take.
        stats: counts messages that were put, and that consumers got.
        pop_counts: counts pops and their check points.
        endings: told of each topic and group that is deleted.
        followed: tables of families that a slave copies: the function that applies the parts of the
            master's table, by the request code.
    """

    def __init__(
        self,
        store: Store,
        runtime: BrokerRuntime,
        client_time: Callable[[], int] | None = None,
        cut: Callable[[int], object] = lambda _: None,
    ) -> None:
        live, slices, repeating = runtime.live, runtime.slices, runtime.repeating
        self.store = store
        self.endings = AllEndings()
        self.followed: dict[RequestCode, Callable[[Sequence[Body]], Job[None]]] = {}
        self.busy = Busy()
        topic_at = MessageTopics(store.reads).topic_at
        scope = Scope(BROKER, live.now.broker_cluster_name, topic_at)
        self.access = Access(live.now, store.directory, scope, _plain_access(runtime))
        self.quotas = Quotas(self.busy.refusal)
        self.static_topics = self._make_static_topics(runtime)
        self.topics = self._make_topics(runtime)
        self.forwarder = Forwarder(live)
        runtime.on_stop.append(self.forwarder.stop)
        self.groups = self._make_groups(runtime)
        self.pop_counts = PopCounts(
            lambda group, topic: group in self.groups and topic in self.topics
        )
        self.creation_times = CreationTimes()
        self.stats = self._make_stats()
        repeating.every(LOOK, lambda: slices.start(self.stats.look()))
        self.endings.add(self.groups)
        self.endings.add(self.stats)
        self.endings.add(EndedSamples(store, self.pop_counts))
        self.clients = self._make_clients(runtime)
        self.client_clock = ClientClock(client_time or store.clock.milliseconds)
        self.past_end = PastEnd(live, store)
        repeating.every(REPORT, self.past_end.report)
        self.endings.add(Restarts(store.config.consumer_offsets))
        self.empty_groups = self._make_empty_groups(runtime)
        self.empty_groups.start(repeating)
        self.offset_room = OffsetRoom(live, store.config.consumer_offsets, self.groups)
        self.lite = LiteTopics(store, runtime, self.topics, self.groups, self.offset_room)
        self.endings.add(self.lite)
        self.locks = QueueLocks(
            lambda: int(store.clock.monotonic() * 1000),
            Shares(lambda: runtime.settings.max_address_share),
        )
        self.replicas = Replicas(lambda: self.replication.listens_at)
        self.refusals = SlaveRefusals(live, self.replicas)
        self.names = Registration(live, self.topics, self.static_topics, self.replicas, slices)
        is_led = live.now.enable_controller_mode
        self.controllers = Controllers(live, store.clock) if is_led else None
        alter = self.controllers.alter if self.controllers is not None else None
        self.replication = Replication(live, store, self.replicas, cut, alter)

    # The lambdas below name parts that are made later than the part that calls them.

    def _creators(self, limits: CreationLimits, runtime: BrokerRuntime) -> Creators:
        live, signer_of = runtime.live, self.access.signers.of
        return Creators(limits, lambda: live.now, signer_of, self.busy.refusal)

    def _make_static_topics(self, runtime: BrokerRuntime) -> StaticTopics:
        return StaticTopics(
            runtime.live.now.broker_name,
            self.store.config.static_topics,
            MOST_QUEUES,
            lambda topic: self.topics.moved(topic),  # noqa: PLW0108
        )

    def _make_topics(self, runtime: BrokerRuntime) -> BrokerTopics:
        return BrokerTopics(
            runtime.live,
            self.store.config.topics,
            lambda topic: self.names.changed(topic),  # noqa: PLW0108
            self._creators(TOPICS, runtime),
            self.static_topics.names,
        )

    def _make_groups(self, runtime: BrokerRuntime) -> Groups:
        return Groups(
            runtime.live,
            self.store.config.groups,
            lambda: self.empty_groups.make_room(),  # noqa: PLW0108
            self._creators(GROUPS, runtime),
        )

    def _make_stats(self) -> Stats:
        store = self.store
        return Stats(
            lambda: store.offsets,
            lambda: store.dispatching.count,
            store.clock.milliseconds,
            self.topics.queues,
            store.reads.stored_bytes,
        )

    def _make_clients(self, runtime: BrokerRuntime) -> Clients:
        return Clients(
            runtime.live,
            self.groups,
            runtime.slices,
            runtime.repeating,
            self.store.clock.milliseconds,
            lambda group: self.empty_groups.left(group),  # noqa: PLW0108
        )

    def _make_empty_groups(self, runtime: BrokerRuntime) -> EmptyGroups:
        return EmptyGroups(
            runtime.live,
            self.store,
            self.groups,
            self.topics,
            self.clients,
            runtime.slices,
            forget=lambda: self.stats.forget_groups(self.groups.__contains__),
        )


def _plain_access(runtime: BrokerRuntime) -> PlainAccess | None:
    """Return the checks by ACL 1.0, whose files are watched; None if it is off."""
    home = runtime.settings.acl_home
    if not runtime.settings.acl_enable or home is None:
        return None
    plain = PlainAccess(home)
    runtime.repeating.every(LOOK_AT_ACL, plain.look)
    runtime.on_stop.append(plain.stop)
    return plain
