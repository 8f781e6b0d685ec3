"""Bodies of requests about users and their permissions.

Upstream: `UserInfo`, `AclInfo`. Enumerations are texts, such as "Super", "enable", "Pub", "Allow".
"""

from __future__ import annotations

import msgspec


class UserInfo(msgspec.Struct, rename="camel", omit_defaults=True):
    """AUTH_CREATE_USER, AUTH_UPDATE_USER, and the answers to AUTH_GET_USER and AUTH_LIST_USER.

    Attributes:
        password: not shown in `repr`. mqlake's answers contain it only for the inner user.
        user_type: "Super" or "Normal".
        user_status: "enable" or "disable".
    """

    username: str | None = None
    password: str | None = None
    user_type: str | None = None
    user_status: str | None = None

    def __repr__(self) -> str:
        return f"UserInfo({self.username!r}, {self.user_type!r}, {self.user_status!r})"


class EntryInfo(msgspec.Struct, rename="camel", omit_defaults=True):
    """An entry of a policy.

    Attributes:
        resource: such as "Topic:orders", "Group:app-*", "Cluster:main" or "*".
        actions: such as "Pub", "Sub" or "All".
        source_ips: IP addresses and networks; empty for all addresses.
        decision: "Allow" or "Deny".
    """

    resource: str | None = None
    actions: list[str] = []
    source_ips: list[str] = []
    decision: str | None = None


class PolicyInfo(msgspec.Struct, rename="camel", omit_defaults=True):
    """The entries of one policy; its type is "Custom" or "Default"."""

    policy_type: str | None = None
    entries: list[EntryInfo] = []


class AclInfo(msgspec.Struct, rename="camel", omit_defaults=True):
    """AUTH_CREATE_ACL, AUTH_UPDATE_ACL, and the answers to AUTH_GET_ACL and AUTH_LIST_ACL.

    Attributes:
        subject: "User:" and the name of a user.
    """

    subject: str | None = None
    policies: list[PolicyInfo] = []
