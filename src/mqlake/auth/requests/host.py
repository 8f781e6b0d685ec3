"""The server whose users and ACLs are managed."""

from __future__ import annotations

from typing import Protocol

from mqlake.remoting.slices import Slices


class AccountLimits(Protocol):
    """The limits of users and ACLs, which are settings of the server."""

    @property
    def max_user_nums(self) -> int: ...
    @property
    def max_acl_entry_nums(self) -> int: ...
    @property
    def max_admin_body_size(self) -> int: ...


class Host(Protocol):
    """A broker or a name server."""

    @property
    def settings(self) -> AccountLimits:
        """The current settings."""
        ...

    @property
    def slices(self) -> Slices:
        """Runs long work, a slice at a time."""
        ...
