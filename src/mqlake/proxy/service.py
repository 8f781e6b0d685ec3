"""The service: the methods of `apache.rocketmq.v2.MessagingService`, and who serves each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from mqlake.grpc.call import FinishedCall
from mqlake.grpc.method import Method
from mqlake.grpc.status import GrpcStatus
from mqlake.proxy.background import Background
from mqlake.proxy.brokers.port import BrokerPort
from mqlake.proxy.clients.clients import LOOK, GrpcClients
from mqlake.proxy.clients.commands import ClientCommands
from mqlake.proxy.clients.lite_subscriptions import LiteSubscriptionCalls
from mqlake.proxy.clients.registration import ClientRegistration
from mqlake.proxy.clients.telemetry import Telemetry
from mqlake.proxy.consuming.family import Consuming
from mqlake.proxy.counts import CallCounts
from mqlake.proxy.gate import Gate
from mqlake.proxy.sending.recalls import RecallCalls
from mqlake.proxy.sending.send import SendCalls
from mqlake.proxy.sending.transactions import EndTransactionCalls, OpenTransactions
from mqlake.proxy.served import ServedMethod, Serving
from mqlake.proxy.settings import ProxySettings
from mqlake.proxy.state import ProxyState
from mqlake.proxy.topic_queues import QueryRoutes
from mqlake.storage.clock import Clock

_GRACE: Final = 3.0
"""Seconds within which messages are returned when the service stops."""


class CallFamily(Protocol):
    """The handlers of one family of methods; it is created with what all share."""

    def __init__(self, state: ProxyState, /) -> None: ...

    def calls(self) -> Sequence[ServedMethod]:
        """Return the handler of each method."""
        ...


FAMILIES: tuple[type[CallFamily], ...] = (
    QueryRoutes,
    RecallCalls,
    Consuming,
    LiteSubscriptionCalls,
)
"""The families of the service that need nothing but the state, in the order of their creation."""


class GrpcService:
    """The service on some brokers.

    Args:
        slow: milliseconds from which a call is logged; 0 for never.

    Attributes:
        state: what its methods share.
        methods: its methods.
        counts: its calls.
    """

    def __init__(
        self,
        brokers: BrokerPort,
        settings: ProxySettings,
        clock: Clock,
        slow: float = 0,
    ) -> None:
        clients = GrpcClients(settings, clock.milliseconds)
        clients.on_end(lambda client: brokers.unregister(client.caller, client.heartbeat))
        self.state = state = ProxyState(settings, brokers, clients, clock, Background())
        self.counts = CallCounts(slow)
        gate, registration = Gate(brokers), ClientRegistration(state)
        serving = Serving(gate, self.counts, begins_at_once=brokers.answer_at_once)
        transactions = OpenTransactions(settings)
        brokers.serve_pushed(ClientCommands(state, transactions).serve)
        sending = SendCalls(state, transactions), EndTransactionCalls(state, transactions)
        families = [registration, *sending, *(family(state) for family in FAMILIES)]
        self.methods: Sequence[Method] = (
            Telemetry(gate, self.counts, clients, registration.register, settings).method(),
            *(serving.method(served) for family in families for served in family.calls()),
        )
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(LOOK, self._look)

    def finished(self, call: FinishedCall) -> None:
        """Count a call that ended without an answer; the others are counted where they are
        answered.
        """
        if call.status is not GrpcStatus.OK:
            self.counts.add_unanswered(call.call.method, call.status.name)

    def _look(self) -> None:
        self._timer = self._loop.call_later(LOOK, self._look)
        self._expire()

    def _expire(self) -> None:
        if self.state.clients.expire():
            self._loop.call_soon(self._expire)

    async def stop(self) -> None:
        """End all clients."""
        self._timer.cancel()
        for client in self.state.clients:
            self.state.clients.end(client.client_id)
        await self.state.background.stop(_GRACE)
