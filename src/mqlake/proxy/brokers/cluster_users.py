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
from mqlake.protocol.bodies.auth import AclInfo, UserInfo
from mqlake.protocol.body import decode_answer
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command
from mqlake.protocol.header import Header
from mqlake.protocol.headers.auth import AclHeader, UserHeader
from mqlake.protocol.signature import Credentials
from mqlake.proxy.brokers.cluster_routes import ClusterRoutes
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.brokers.recent_values import RecentValues

_AT_ONCE: Final = 32
"""Users that brokers are asked for at the same time: anybody may claim any name."""


T = TypeVar("T")


class _UserAndAcl(NamedTuple):
    user: User
    decisions: Decisions | None


class ClusterUsers:
    """Checks callers by the users and ACLs that a master of the cluster has.

    Args:
        cluster: asks brokers, as the proxy itself: its user must be their inner user.
        is_authorizing: whether permissions are checked, not only users.
    """

    def __init__(self, cluster: Cluster, routes: ClusterRoutes, *, is_authorizing: bool) -> None:
        self._cluster, self._routes = cluster, routes
        self._is_authorizing = is_authorizing
        self._accounts = RecentValues(self._account)
        self._places = asyncio.Semaphore(_AT_ONCE)
        scope = Scope(PROXY, ALL_CLUSTERS, _topic_at)
        self._authorization = Authorization(self._decisions, (), scope)

    async def credentials(self, name: str, *, is_doubted: bool = False) -> Credentials | None:
        """Return the credentials of a user who may make requests; None without one.

        Raises:
            MqlakeError: no broker tells.
        """
        account = await self._accounts.get(name, is_doubted=is_doubted)
        if account is None or not account.user.is_enabled:
            return None
        return Credentials(name, account.user.password)

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
        async with self._places:
            info = await self._ask(RequestCode.AUTH_GET_USER, UserHeader(username=name), UserInfo)
            if info is None:
                return None
            if not info.password:
                raise MqlakeError(
                    "brokers tell passwords to their inner user only: give the proxy the access key"
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
        for address in await self._routes.masters():
            try:
                answer = await self._cluster.ask(address, code, header)
            except MqlakeError as error:
                failure = error
            else:
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
