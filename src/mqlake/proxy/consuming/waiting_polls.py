"""How many calls wait for messages, and the shares of clients and addresses."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from mqlake.grpc.messages import Code
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.errors import StatusError
from mqlake.proxy.settings import ProxySettings
from mqlake.remoting.shares import Shares, owner_of


class WaitingPolls:
    """Counts the calls that wait for messages."""

    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        self._of_addresses = Shares(lambda: settings.max_address_share)
        # By address, too: anybody may call with the id of another client.
        self._of_clients: dict[tuple[str, str], int] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @contextmanager
    def one_more(self, caller: Caller) -> Generator[None]:
        """Count a call until the block ends.

        Raises:
            StatusError: TOO_MANY_REQUESTS.
        """
        owner, client_id = owner_of(caller.address), caller.client_id
        self._check(owner, client_id)
        self._add(owner, client_id, 1)
        try:
            yield
        finally:
            self._add(owner, client_id, -1)

    def _check(self, owner: str, client_id: str) -> None:
        settings = self._settings
        refusal = self._of_addresses.refusal(owner, self._count, settings.max_polls, "maxPolls")
        own, most = self._of_clients.get((owner, client_id), 0), settings.max_polls_per_client
        if own >= most:
            refusal = f"the client has {own} already, and the maximum is {most} (maxPollsPerClient)"
        if refusal is not None:
            reason = f"too many calls wait for messages: {refusal}"
            raise StatusError(Code.TOO_MANY_REQUESTS, reason)

    def _add(self, owner: str, client_id: str, count: int) -> None:
        self._count += count
        self._of_addresses.add(owner, count)
        now = self._of_clients.get((owner, client_id), 0) + count
        if now:
            self._of_clients[owner, client_id] = now
        else:
            self._of_clients.pop((owner, client_id), None)
