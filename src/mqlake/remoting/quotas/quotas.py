"""The limits of addresses and users at one server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from mqlake.protocol.command import Command
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.signature import ACCESS_KEY
from mqlake.remoting.quotas.quota import Excess, Quota, QuotaKind
from mqlake.remoting.quotas.usage import Usage
from mqlake.remoting.quotas.usages import Usages
from mqlake.remoting.shares import owner_of

_REST: Final = 0.1
"""Seconds for which a connection is not served after one refused request too many."""

Refuse = Callable[[str, str], RemotingError]
"""Counts a refusal by its reason, and returns the answer with a text."""


class Counted(Protocol):
    """A connection, as `Peer` is one.

    Attributes:
        address: "host:port" of the other side.
        in_flight: its requests that wait for their answer.
        usages: what the connection counts into.
    """

    address: str
    in_flight: int
    usages: tuple[Usage, ...]

    def rest(self, seconds: float) -> None:
        """Serve nothing of the connection for so long."""
        ...


class Quotas:
    """Counts what addresses and users use, and refuses what is too much.

    While there is no limit, nothing is counted. While there is one, requests are served one by one
    (`Peer.usages`), so that each of them is counted before it is served. Connections of an owner
    with many refused requests rest, so that others are served.
    """

    def __init__(self, refuse: Refuse) -> None:
        self._refuse, self._loop = refuse, asyncio.get_running_loop()
        self._addresses = Usages(QuotaKind.ADDRESS, self._loop)
        self._users = Usages(QuotaKind.USER, self._loop)
        self._of_user: dict[Counted, Usage] = {}
        self._of_address: dict[Counted, Usage] = {}

    def set(self, address: Quota, user: Quota, peers: Iterable[Counted]) -> None:
        """Set the limits from now on, for the open connections, too."""
        self._addresses.set(address)
        self._users.set(user)
        for peer in peers:
            if not self._is_on:
                self.lost(peer)
            elif peer not in self._of_address:
                self._join(peer)

    @property
    def _is_on(self) -> bool:
        return self._addresses.quota.is_on or self._users.quota.is_on

    def opened(self, peer: Counted) -> str | None:
        """Count a connection; return why it must be closed, None if its address may have it."""
        if not self._is_on:
            return None
        usage = self._join(peer)
        found = usage.too_many_connections(self._addresses.quota)
        return None if found is None else self._refused(found).remark

    def lost(self, peer: Counted) -> None:
        """Take a connection back."""
        if (usage := self._of_address.pop(peer, None)) is not None:
            self._addresses.leave(usage, peer.in_flight)
        if (usage := self._of_user.pop(peer, None)) is not None:
            self._users.leave(usage, peer.in_flight)
        peer.usages = ()

    def check_address(self, peer: Counted, request: Command, _route: object) -> None:
        """Refuse a request that is too much for its address; it is called before a route.

        Raises:
            RemotingError: a limit is exceeded; it is named.
        """
        if peer.usages and (usage := self._of_address.get(peer)) is not None:
            self._check(peer, usage, self._addresses.quota, request)

    def check_user(self, peer: Counted, request: Command, _route: object) -> None:
        """Refuse a request that is too much for its user; it is called once the user is known.

        Raises:
            RemotingError: a limit is exceeded; it is named.
        """
        quota = self._users.quota
        if not quota.is_on:
            return
        name, usage = request.fields.get(ACCESS_KEY), self._of_user.get(peer)
        if not name:
            if usage is not None:
                self._stay_out(peer, usage)
            return
        if usage is None or usage.owner != name:
            usage = self._move(peer, usage, name)
        if (found := usage.too_many_connections(quota)) is not None:
            self._stay_out(peer, usage)
            raise self._refused_again(peer, usage, found)
        self._check(peer, usage, quota, request)

    def _check(self, peer: Counted, usage: Usage, quota: Quota, request: Command) -> None:
        found = usage.excess(quota, self._loop.time())
        if found is not None:
            raise self._refused_again(peer, usage, found)
        # Its size counts from the next request on: otherwise a message that is larger than the rate
        # could never be sent.
        usage.requests.add(1)
        usage.size.add(len(request.body))

    def _refused_again(self, peer: Counted, usage: Usage, found: Excess) -> RemotingError:
        """Return the answer to a refused request; let its connection rest if there are many."""
        if usage.note_refusal(self._loop.time()):
            peer.rest(_REST)
        return self._refused(found)

    def _refused(self, found: Excess) -> RemotingError:
        return self._refuse(*found)

    def _join(self, peer: Counted) -> Usage:
        usage = self._addresses.join(owner_of(peer.address), peer.in_flight)
        self._of_address[peer] = usage
        peer.usages = (usage,)
        return usage

    def _move(self, peer: Counted, old: Usage | None, name: str) -> Usage:
        """Count a connection to the user that has signed its last request."""
        if old is not None:
            self._stay_out(peer, old)
        usage = self._of_user[peer] = self._users.join(name, peer.in_flight)
        peer.usages = (*peer.usages, usage)
        return usage

    def _stay_out(self, peer: Counted, usage: Usage) -> None:
        """Count a connection to no user any more."""
        del self._of_user[peer]
        self._users.leave(usage, peer.in_flight)
        peer.usages = tuple(each for each in peer.usages if each is not usage)
