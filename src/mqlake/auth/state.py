"""Users and ACLs at one moment, and the changes that administrators make to them.

Upstream: `AuthenticationMetadataManagerImpl`, `AuthorizationMetadataManagerImpl`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import msgspec

from mqlake.auth.policies import Acl, Entry, PolicyType
from mqlake.auth.reading import member
from mqlake.auth.refusals import refused
from mqlake.auth.resource import Resource
from mqlake.auth.users import SUBJECT, User, UserStatus, UserType
from mqlake.protocol.bodies.auth import UserInfo

V = TypeVar("V")


class AuthState(NamedTuple):
    """Users and ACLs, both by the name of the user. The methods return a changed copy."""

    users: Mapping[str, User] = MappingProxyType({})
    acls: Mapping[str, Acl] = MappingProxyType({})

    def __repr__(self) -> str:
        return f"AuthState({len(self.users)} users, {len(self.acls)} ACLs)"

    def with_user(self, user: User, most: int) -> AuthState:
        """Add a user.

        Raises:
            RemotingError: the user exists, or there are `most` users.
        """
        if user.username in self.users:
            raise refused("The user is existed")
        if len(self.users) >= most:
            raise refused(f"there are {most} users already (maxUserNums)")
        return self._replace(users={**self.users, user.username: user})

    def with_changed_user(self, name: str, info: UserInfo) -> AuthState:
        """Change what is given of a user.

        Raises:
            RemotingError: the user does not exist, or a value is illegal.
        """
        old = self.users.get(name)
        if old is None:
            raise refused("The user is not exist")
        password = info.password if info.password and info.password.strip() else old.password
        new = msgspec.structs.replace(
            old,
            password=password,
            user_type=member(UserType, info.user_type, "user type") or old.user_type,
            user_status=member(UserStatus, info.user_status, "user status") or old.user_status,
        )
        return self._replace(users={**self.users, name: new})

    def without_user(self, name: str) -> AuthState:
        """Remove a user and its ACL."""
        return AuthState(_without(self.users, name), _without(self.acls, name))

    def with_entries(
        self, name: str, policies: Iterable[tuple[PolicyType, list[Entry]]], most: int
    ) -> AuthState:
        """Add entries to the ACL of a user; those for the same resources are replaced.

        Raises:
            RemotingError: the user does not exist, or would have more than `most` entries.
        """
        if name not in self.users:
            raise refused(f"The subject of {SUBJECT}{name} is not exist.")
        acl = self.acls.get(name, Acl())
        for kind, entries in policies:
            acl = acl.merged(kind, entries)
        if acl.entries > most:
            raise refused(f"a user can have {most} entries (maxAclEntryNums)")
        return self._replace(acls={**self.acls, name: acl})

    def without_entry(self, name: str, kind: PolicyType, resource: Resource | None) -> AuthState:
        """Remove the entry for a resource from the ACL of a user, or without one the ACL.

        Raises:
            RemotingError: the user or its ACL does not exist.
        """
        if name not in self.users:
            raise refused("The subject is not exist.")
        acl = self.acls.get(name)
        if acl is None:
            raise refused("The acl is not exist.")
        left = Acl() if resource is None else acl.without(kind, resource)
        if not left.entries:
            return self._replace(acls=_without(self.acls, name))
        return self._replace(acls={**self.acls, name: left})


def _without(table: Mapping[str, V], name: str) -> dict[str, V]:
    return {key: value for key, value in table.items() if key != name}
