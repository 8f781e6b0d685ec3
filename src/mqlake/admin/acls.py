"""ACLs of users: create, delete and list their entries (upstream: `CreateAclSubCommand`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from mqlake.admin.admin import Admin
from mqlake.admin.each_broker import Changed
from mqlake.admin.users import told
from mqlake.protocol.bodies.auth import AclInfo, EntryInfo, PolicyInfo
from mqlake.protocol.body import decode_answer, encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.auth import AclHeader, DeleteAclHeader, ListAclsHeader


class AclEntry(msgspec.Struct, rename="camel"):
    """An entry of a user's policy on a broker; no source addresses mean all addresses."""

    broker_name: str
    subject: str
    policy_type: str
    resource: str
    actions: str
    source_ips: str
    decision: str


class Grant(NamedTuple):
    """The same entry for several resources.

    Attributes:
        resources: such as "Topic:orders" and "Group:app-*".
        actions: such as "Pub".
        sources: IP addresses and networks; empty for all addresses.
    """

    resources: Sequence[str]
    actions: Sequence[str]
    sources: Sequence[str] = ()
    decision: str = "Allow"


async def create(
    admin: Admin,
    subject: str,
    grant: Grant,
    cluster: str | None,
    broker: str | None,
    *,
    code: RequestCode = RequestCode.AUTH_CREATE_ACL,
) -> list[Changed]:
    """Add entries to the ACL of a user; entries for the same resources are replaced.

    Args:
        subject: "User:" and the name of the user.
        code: brokers do the same for AUTH_UPDATE_ACL.
    """
    entries = [
        EntryInfo(resource, list(grant.actions), list(grant.sources), grant.decision)
        for resource in grant.resources
    ]
    body = encode_body(AclInfo(subject, [PolicyInfo("Custom", entries)]))
    return await told(admin, code, AclHeader(subject=subject), body, cluster, broker)


async def delete(
    admin: Admin, subject: str, resource: str | None, cluster: str | None, broker: str | None
) -> list[Changed]:
    """Delete the entry for a resource, or without one the ACL of a user."""
    header = DeleteAclHeader(subject=subject, resource=resource)
    return await told(admin, RequestCode.AUTH_DELETE_ACL, header, b"", cluster, broker)


async def get(
    admin: Admin, subject: str, cluster: str | None, broker: str | None
) -> list[AclEntry]:
    """Return the entries of a user on each broker."""
    found: list[AclEntry] = []
    for each in await admin.brokers(cluster, broker):
        answer = await admin.ask(each.address, RequestCode.AUTH_GET_ACL, AclHeader(subject=subject))
        if answer.body:
            found += _entries(each.name, decode_answer(AclInfo, answer.body))
    return found


async def listed(
    admin: Admin,
    subject: str | None,
    resource: str | None,
    cluster: str | None,
    broker: str | None,
) -> list[AclEntry]:
    """Return the entries on each broker whose subject and resource contain these texts."""
    return [
        entry
        for each in await admin.brokers(cluster, broker)
        for acl in await _acls(admin, each.address, subject, resource)
        for entry in _entries(each.name, acl)
    ]


async def copy(admin: Admin, source: str, target: str, subjects: Iterable[str]) -> list[str]:
    """Copy ACLs from one broker to another, all of them without subjects; return their subjects.

    The target must have the users. Its entries for other resources are kept.
    """
    wanted, there = frozenset(subjects), await admin.broker(target)
    copied: list[str] = []
    for acl in await _acls(admin, (await admin.broker(source)).address, None, None):
        subject = acl.subject or ""
        if not wanted or subject in wanted:
            header, body = AclHeader(subject=subject), encode_body(acl)
            await admin.ask(there.address, RequestCode.AUTH_CREATE_ACL, header, body)
            copied.append(subject)
    return copied


async def _acls(
    admin: Admin, address: str, subject: str | None, resource: str | None
) -> list[AclInfo]:
    header = ListAclsHeader(subject_filter=subject, resource_filter=resource)
    answer = await admin.ask(address, RequestCode.AUTH_LIST_ACL, header)
    return decode_answer(list[AclInfo], answer.body) if answer.body else []


def _entries(broker: str, acl: AclInfo) -> list[AclEntry]:
    return [
        AclEntry(
            broker_name=broker,
            subject=acl.subject or "",
            policy_type=policy.policy_type or "",
            resource=entry.resource or "",
            actions=",".join(entry.actions),
            source_ips=",".join(entry.source_ips),
            decision=entry.decision or "",
        )
        for policy in acl.policies
        for entry in policy.entries
    ]
