"""The texts of settings: users, credentials and lists of request codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Protocol

import msgspec

from mqlake.auth.reading import read_user
from mqlake.auth.users import User, UserType
from mqlake.errors import StoreError
from mqlake.protocol.bodies.auth import UserInfo
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.signature import Credentials, are_credentials
from mqlake.store.bounds import Form

_LONGEST = 4096
_NEVER = range(RequestCode.AUTH_CREATE_USER, RequestCode.AUTH_LIST_ACL + 1)
"""Codes that no list of exceptions may contain: users and ACLs are never open to everyone."""


class AuthSettings(Protocol):
    """The settings of a server that are about users and permissions."""

    @property
    def authentication_enabled(self) -> bool: ...
    @property
    def authorization_enabled(self) -> bool: ...
    @property
    def authentication_whitelist(self) -> str: ...
    @property
    def authorization_whitelist(self) -> str: ...
    @property
    def init_authentication_user(self) -> str: ...
    @property
    def inner_credentials(self) -> Credentials | None: ...
    @property
    def max_user_nums(self) -> int: ...


def initial_user(text: str) -> User | None:
    """Return the super user in a JSON text with `username` and `password`; None without a text.

    Raises:
        ValueError: the text is no such JSON. The message does not contain the text.
    """
    if not text.strip():
        return None
    try:
        info = msgspec.json.decode(text.encode("utf-8", "replace"), type=UserInfo)
        user = read_user(UserInfo(info.username, info.password))
    except (msgspec.MsgspecError, UnicodeDecodeError, RemotingError):
        raise ValueError("not JSON with username and password") from None
    return msgspec.structs.replace(user, user_type=UserType.SUPER)


def codes(text: str) -> frozenset[int]:
    """Return the request codes in a list with commas.

    Raises:
        ValueError: a part is not a request code, or is about users and ACLs.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    found = frozenset(int(RequestCode(int(part))) for part in parts)
    if any(code in _NEVER for code in found):
        raise ValueError("a request about users and ACLs")
    return found


def is_initial_user(text: str) -> bool:
    """Return whether `initial_user` accepts a text."""
    return len(text) <= _LONGEST and _accepts(initial_user, text)


def are_codes(text: str) -> bool:
    """Return whether `codes` accepts a text."""
    return len(text) <= _LONGEST and _accepts(codes, text)


def _accepts(function: Callable[[str], object], text: str) -> bool:
    try:
        function(text)
    except ValueError:
        return False
    return True


InitialUser = Annotated[
    str, Form('JSON such as `{"username": …, "password": …}`', is_initial_user, is_secret=True)
]
"""A setting with a user that is created at the start."""
RequestCodes = Annotated[
    str, Form("request codes, separated by `,`, without those of users and ACLs", are_codes)
]
"""A setting with exceptions from checks."""
InnerCredentials = Annotated[
    str, Form('JSON such as `{"accessKey": …, "secretKey": …}`', are_credentials, is_secret=True)
]
"""A setting with the credentials of servers."""


def check(settings: AuthSettings) -> None:
    """Check that settings go together.

    Raises:
        StoreError: authorization is on and authentication is off.
    """
    if settings.authorization_enabled and not settings.authentication_enabled:
        raise StoreError(
            "setting authorizationEnabled: authorization without authenticationEnabled would trust"
            " the name that a request states: set authenticationEnabled, too"
        )
