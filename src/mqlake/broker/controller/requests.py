"""What controllers, other brokers of the name and administrators ask about roles.

NOTIFY_BROKER_ROLE_CHANGED, GET_BROKER_EPOCH_CACHE, EXCHANGE_BROKER_HA_INFO.
Upstream: `AdminBrokerProcessor`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mqlake.broker.controller.membership import Membership
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.protocol.bodies.controller import EpochEntry, EpochEntryCache
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.controller import ExchangeHaInfoHeader
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route

_NO_END = (1 << 63) - 1


class ControllerRequests:
    """Answers what is asked about roles; and keeps this broker in its group.

    Attributes:
        membership: None without a controller.
    """

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime
        is_led = state.replication.group is not None
        self.membership = Membership(state, runtime) if is_led else None
        if self.membership is not None:
            runtime.on_start.append(self.membership.start)
            runtime.on_stop.append(self.membership.stop)

    def routes(self) -> Sequence[Route]:
        """Return what serves each request code."""
        return (
            Route(RequestCode.NOTIFY_BROKER_ROLE_CHANGED, self._notified, Permission.UPDATE),
            Route(RequestCode.GET_BROKER_EPOCH_CACHE, self._epochs, Permission.READ),
            Route(RequestCode.EXCHANGE_BROKER_HA_INFO, self._ha_info, Permission.UPDATE),
        )

    def _notified(self, _peer: Peer, request: Command) -> Command:
        """Ask the controller now, whoever reports that something has changed there."""
        if self.membership is not None:
            self.membership.look_soon()
        return response(request)

    def _epochs(self, _peer: Peer, request: Command) -> Command:
        group, settings = self._state.replication.group, self._runtime.settings
        if group is None:
            raise RemotingError(ResponseCode.SYSTEM_ERROR, "this request only for controllerMode ")
        epochs = group.epochs.all
        ends = [*(each.start for each in epochs[1:]), _NO_END]
        entries = [EpochEntry(*each, end) for each, end in zip(epochs, ends, strict=False)]
        body = EpochEntryCache(
            settings.broker_cluster_name,
            settings.broker_name,
            settings.broker_id,
            entries,
            self._state.store.watermarks.end,
        )
        return response(request, body=encode_body(body))

    def _ha_info(self, _peer: Peer, request: Command) -> Command:
        """Return where this broker sends its log; or note where a returning master does so."""
        found = request.header(ExchangeHaInfoHeader)
        if found.master_ha_address:
            self._note_returning(found)
            return response(request)
        header = ExchangeHaInfoHeader(
            master_ha_address=self._state.replicas.ha_address or None,
            master_flush_offset=self._state.store.watermarks.flushed,
            master_address=self._runtime.settings.broker_address,
        )
        return response(request, header=header)

    def _note_returning(self, found: ExchangeHaInfoHeader) -> None:
        """Connect to a master that returns, and that is not registered before this slave does.

        Only while no name server knows a master, or this slave acts for it, and only at the host
        of the last known master: anyone could send this.
        """
        state, runtime, slave = self._state, self._runtime, self._state.replication.slave
        if slave is None or not runtime.settings.has_acting_master:
            return
        if state.replicas.master_address and not state.replicas.is_acting:
            return
        if not state.replicas.may_be_master(found.master_address, found.master_ha_address):
            return
        slave.follow(found.master_address, found.master_ha_address)
