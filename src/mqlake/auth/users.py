"""Users of a broker (upstream: `User`, `UserType`, `UserStatus`)."""

from __future__ import annotations

from enum import Enum

import msgspec

SUBJECT = "User:"
"""What the text of a subject begins with, before the name of the user."""


class UserType(Enum):
    """What authorization checks: a super user may make every request."""

    SUPER = "Super"
    NORMAL = "Normal"


class UserStatus(Enum):
    """Whether a user may make requests."""

    ENABLE = "enable"
    DISABLE = "disable"


class User(msgspec.Struct, frozen=True, rename="camel"):
    """A user.

    Attributes:
        username: the access key of its requests.
        password: the key of its signatures. It is not shown in `repr`.
    """

    username: str
    password: str
    user_type: UserType = UserType.NORMAL
    user_status: UserStatus = UserStatus.ENABLE

    @property
    def is_super(self) -> bool:
        """Return whether the user may make every request."""
        return self.user_type is UserType.SUPER

    @property
    def is_enabled(self) -> bool:
        """Return whether the user may make requests."""
        return self.user_status is UserStatus.ENABLE

    @property
    def subject(self) -> str:
        """Return the user as the subject of an ACL."""
        return SUBJECT + self.username

    def __repr__(self) -> str:
        return f"User({self.username!r}, {self.user_type.value}, {self.user_status.value})"
