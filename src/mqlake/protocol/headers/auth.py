"""Headers of requests about users and ACLs (upstream: `CreateUserRequestHeader` and similar)."""

from __future__ import annotations

from mqlake.protocol.header import Header


class UserHeader(Header):
    """AUTH_CREATE_USER, AUTH_UPDATE_USER, AUTH_DELETE_USER, AUTH_GET_USER."""

    username: str | None = None


class ListUsersHeader(Header):
    """AUTH_LIST_USER: the users whose name contains the filter."""

    filter: str | None = None


class AclHeader(Header):
    """AUTH_CREATE_ACL, AUTH_UPDATE_ACL, AUTH_GET_ACL: the subject, such as "User:alice"."""

    subject: str | None = None


class DeleteAclHeader(Header):
    """AUTH_DELETE_ACL.

    Attributes:
        policy_type: "Custom", by default, or "Default".
        resource: whose entry is removed; without it, the whole ACL is removed.
    """

    subject: str | None = None
    policy_type: str | None = None
    resource: str | None = None


class ListAclsHeader(Header):
    """AUTH_LIST_ACL: the entries whose subject and resource contain the filters."""

    subject_filter: str | None = None
    resource_filter: str | None = None
