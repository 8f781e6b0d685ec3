"""Manage users and ACLs: the requests themselves are the same at brokers and name servers."""

from __future__ import annotations

from collections.abc import Sequence

from mqlake.auth.requests.acls import AclRequests
from mqlake.auth.requests.changes import AccountChanges
from mqlake.auth.requests.users import UserRequests
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.remoting.route import Route


class AccountAdmin:
    """Answers requests about users and ACLs."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        changes = AccountChanges(state.access)
        runtime.on_stop.append(changes.stop)
        self._families = UserRequests(runtime, changes), AclRequests(runtime, changes)

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return [route for family in self._families for route in family.routes()]
