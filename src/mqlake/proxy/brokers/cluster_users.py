"""The users of a cluster, whom the proxy checks as brokers check them.

Upstream: `ProxyAuthenticationMetadataProvider`, `ProxyAuthorizationMetadataProvider`.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple, TypeVar

from mqlake.auth.authorization import Authorization, Scope
from mqlake.auth.decisions import Decisions
from mqlake.auth.policies import Acl
from mqlake.auth.reading import read_policies, read_user
from mqlake.auth.refusals import refused, shown
from mqlake.auth.rules import ALL_CLUSTERS, PROXY
from mqlake.auth.users import SUBJECT, User
from mqlake.client.cluster import Cluster
from mqlake.errors import MqlakeError
from mqlake.grpc.messages import Code
from mqlake.protocol.bodies.auth import AclInfo, UserInfo
from mqlake.protocol.body import decode_answer
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.header import Header
from mqlake.protocol.headers.auth import AclHeader, UserHeader
from mqlake.protocol.signature import Credentials
from mqlake.proxy.brokers.cluster_routes import ClusterRoutes
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.brokers.recent_values import RecentValues
from mqlake.proxy.errors import StatusError
from mqlake.remoting.shares import Shares, owner_of

_AT_ONCE: Final = 32
"""New names that brokers are asked for at the same time: anybody may claim any name."""
_WAITING: Final = 1024
"""Calls with new names that wait."""


T = TypeVar("T")


class _UserAndAcl(NamedTuple):
    user: User
    decisions: Decisions | None


class ClusterUsers:
    """Checks callers by the users and ACLs that a master of the cluster has.

    Args:
        cluster: asks brokers, as the proxy itself: its user must be their inner user.
        share: percent of the calls that wait which may be those of one address.
        is_authorizing: whether permissions are checked, not only users.
    """

    def __init__(
        self, cluster: Cluster, routes: ClusterRoutes, share: int, *, is_authorizing: bool
    ) -> None:
        self._cluster, self._routes = cluster, routes
        self._is_authorizing = is_authorizing
        self._accounts = RecentValues(self._account)
        self._places, self._waiting = asyncio.Semaphore(_AT_ONCE), 0
        self._shares, self._answering = Shares(lambda: share), ""
        scope = Scope(PROXY, ALL_CLUSTERS, _topic_at)
        self._authorization = Authorization(self._decisions, (), scope)

    async def credentials(
        self, name: str, address: str, *, is_doubted: bool = False
    ) -> Credentials | None:
        """Return the credentials of a user who may make requests; None without one.

        Raises:
            StatusError: TOO_MANY_REQUESTS: too many calls with new names wait.
            MqlakeError: no broker tells.
        """
        if self._accounts.known(name) is None:
            account = await self._new(name, owner_of(address))
        else:
            account = await self._accounts.get(name, is_doubted=is_doubted)
        if account is None or not account.user.is_enabled:
            return None
        return Credentials(name, account.user.password)

    async def _new(self, name: str, owner: str) -> _UserAndAcl | None:
        """Return a user that was not asked for before."""
        shares = self._shares
        refusal = shares.refusal(owner, self._waiting, _WAITING, "calls with new names")
        if refusal is not None:
            raise StatusError(Code.TOO_MANY_REQUESTS, refusal)
        self._waiting += 1
        shares.add(owner)
        try:
            async with self._places:
                return await self._accounts.get(name)
        finally:
            self._waiting -= 1
            shares.add(owner, -1)

    async def close(self) -> None:
        """End what is running."""
        await self._accounts.close()

    def check(self, command: Command, caller: Caller) -> None:
        """Refuse a request that its sender may not make.

        Raises:
            RemotingError: NO_PERMISSION.
        """
        if caller.credentials is None:
            raise refused("username cannot be null.")
        name = caller.credentials.access_key
        account = self._accounts.known(name)
        if account is None:
            raise refused(f"User:{shown(name)} is not found.")
        if self._is_authorizing:
            self._authorization.check(account.user, command, caller.address)

    def _decisions(self, name: str) -> Decisions | None:
        account = self._accounts.known(name)
        return None if account is None else account.decisions

    async def _account(self, name: str) -> _UserAndAcl | None:
        info = await self._ask(RequestCode.AUTH_GET_USER, UserHeader(username=name), UserInfo)
        if info is None:
            return None
        if not info.password:
            raise MqlakeError(
                "brokers send passwords to their inner user only: give the proxy the access key"
                " and the secret key of innerClientAuthenticationCredentials"
            )
        acl = None
        if self._is_authorizing:
            acl = await self._ask(
                RequestCode.AUTH_GET_ACL, AclHeader(subject=SUBJECT + name), AclInfo
            )
        return _UserAndAcl(read_user(info), None if acl is None else _decisions_of(acl))

    async def _ask(self, code: RequestCode, header: Header, kind: type[T]) -> T | None:
        """Return what the first master that answers has; None if it has nothing."""
        failure = MqlakeError("no name server knows a broker with a master")
        masters = await self._routes.masters()
        # The one that has answered comes first: one that hangs delays all calls.
        for address in sorted(masters, key=lambda each: each != self._answering):
            try:
                answer = await self._cluster.ask(address, code, header)
            except RemotingError as error:
                failure = error
            except MqlakeError as error:
                failure = error
                self._routes.suspect()
            else:
                self._answering = address
                return decode_answer(kind, answer.body) if answer.body else None
        raise failure


def _topic_at(_offset: int) -> None:
    """Return no topic: a proxy has no messages."""


def _decisions_of(info: AclInfo) -> Decisions | None:
    acl = Acl()
    policies = [policy for policy in info.policies if policy.entries]
    if not policies:
        return None
    for kind, entries in read_policies(policies):
        acl = acl.merged(kind, entries)
    return Decisions(acl)
