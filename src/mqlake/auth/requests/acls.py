"""Create, change, delete and show ACLs (upstream: `AdminBrokerProcessor.createAcl`)."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

from mqlake.auth.policies import PolicyType
from mqlake.auth.reading import member, read_policies, read_resource, username_of, write_acl
from mqlake.auth.refusals import refused
from mqlake.auth.requests.bodies import array, body_of
from mqlake.auth.requests.changes import AccountChanges
from mqlake.auth.requests.host import Host
from mqlake.protocol.bodies.auth import AclInfo, PolicyInfo
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.headers.auth import AclHeader, DeleteAclHeader, ListAclsHeader
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.members import Members
from mqlake.remoting.route import Answer, Route
from mqlake.remoting.slices import Job


class AclRequests:
    """Answers requests about ACLs."""

    def __init__(self, host: Host, changes: AccountChanges) -> None:
        self._host, self._changes = host, changes

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.AUTH_CREATE_ACL, self._put, Permission.UPDATE),
            Route(RequestCode.AUTH_UPDATE_ACL, self._put, Permission.UPDATE),
            Route(RequestCode.AUTH_DELETE_ACL, self._delete, Permission.UPDATE),
            Route(RequestCode.AUTH_GET_ACL, self._get, Permission.READ),
            Route(RequestCode.AUTH_LIST_ACL, self._list, Permission.READ),
        )

    async def _put(self, _peer: Peer, request: Command) -> Command:
        """Add entries, as upstream does for both codes."""
        self._changes.caller(request)
        info = body_of(AclInfo, request, self._host.settings) or AclInfo()
        if not info.policies:
            raise refused("The body of acl is null")
        name = username_of(info.subject or request.header(AclHeader).subject)
        policies, most = read_policies(info.policies), self._host.settings.max_acl_entry_nums
        await self._changes.apply(lambda state: state.with_entries(name, policies, most))
        return response(request)

    async def _delete(self, _peer: Peer, request: Command) -> Command:
        self._changes.caller(request)
        header = request.header(DeleteAclHeader)
        name = username_of(header.subject)
        kind = member(PolicyType, header.policy_type, "policy type") or PolicyType.CUSTOM
        resource = None
        if header.resource is not None and header.resource.strip():
            resource = read_resource(header.resource)
        await self._changes.apply(lambda state: state.without_entry(name, kind, resource))
        return response(request)

    def _get(self, _peer: Peer, request: Command) -> Command:
        self._changes.caller(request)
        name, state = username_of(request.header(AclHeader).subject), self._changes.accounts.state
        if name not in state.users:
            raise refused("The subject is not exist.")
        acl = state.acls.get(name)
        if acl is None:
            return response(request)
        return response(request, body=encode_body(write_acl(name, acl)))

    def _list(self, peer: Peer, request: Command) -> Answer | Coroutine[Any, Any, Answer]:
        return self._host.slices.serve(peer, self._found(request))

    def _found(self, request: Command) -> Job[Command]:
        self._changes.caller(request)
        header, found = request.header(ListAclsHeader), Members()
        subject, resource = header.subject_filter or "", header.resource_filter or ""
        for name, acl in self._changes.accounts.state.acls.items():
            info = write_acl(name, acl)
            if subject in (info.subject or "") and (left := _filtered(info, resource)):
                found.append(encode_body(AclInfo(info.subject, left)))
            yield
        return response(request, body=array(found))


def _filtered(info: AclInfo, resource: str) -> list[PolicyInfo]:
    """Return the policies with those entries whose resource contains a text."""
    found: list[PolicyInfo] = []
    for policy in info.policies:
        entries = [each for each in policy.entries if resource in (each.resource or "")]
        if entries:
            found.append(PolicyInfo(policy.policy_type, entries))
    return found
