"""The options of `mqlake` about TLS, and the user of its environment: they apply to all connections
of the command.

The user and its password have no options: other users of a machine can read command lines. The
environment may have the user alone: then a person at a terminal types the password.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mqlake.client import access_options as options
from mqlake.errors import MqlakeError

if TYPE_CHECKING:
    from mqlake.client.access import ClientAccess

NO_USER = "username cannot be null."
"""How brokers and name servers refuse requests without a user."""
LOST = "the connection was lost"


def _option(option: options.AccessOption, metavar: str | None = "FILE", more: str = "") -> Any:
    return typer.Option(
        option.flag,
        envvar=option.variable,
        metavar=metavar,
        help=option.meaning + more,
        show_default=False,
    )


Tls = Annotated[bool, _option(options.TLS, None)]
Ca = Annotated[str, _option(options.CA)]
Cert = Annotated[str, _option(options.CERT)]
_PASSWORD = (
    f" The environment variable {options.KEY_PASSWORD.variable} has the password of an encrypted"
    " key."
)
Key = Annotated[str, _option(options.KEY, more=_PASSWORD)]
Verify = Annotated[Literal["full", "ca", "none"] | None, _option(options.VERIFY, None)]


class _AccessOptions:
    """What the options say; a process runs one command at a time."""

    values: dict[str, str] = {}  # noqa: RUF012 (it is replaced, not changed)
    password = ""


def choose(*, tls: bool, ca: str, cert: str, key: str, verify: str | None) -> None:
    """Note the options for the command that follows them."""
    given = {
        options.TLS: "true" if tls else "",
        options.CA: ca,
        options.CERT: cert,
        options.KEY: key,
        options.VERIFY: verify or "",
    }
    _AccessOptions.values = {option.name: text for option, text in given.items() if text}
    _AccessOptions.password = ""


def chosen() -> ClientAccess:
    """Return how the command's connections are opened.

    If the environment has a user without a password, a person at a terminal is asked for it once.

    Raises:
        MqlakeError: only one of MQLAKE_ACCESS_KEY and MQLAKE_SECRET_KEY is set, or a variable has a
            value that is not allowed.
    """
    from mqlake.client.access import access_of

    return access_of(_AccessOptions.values | _typed_password(), os.environ)


def _typed_password() -> dict[str, str]:
    """Return the password that a person types; nothing if it is set or nobody can be asked."""
    user = os.environ.get(options.ACCESS_KEY.variable)
    if not user or os.environ.get(options.SECRET_KEY.variable) or not sys.stdin.isatty():
        return {}
    if not _AccessOptions.password:
        from getpass import getpass

        _AccessOptions.password = getpass(f"Password of {user}: ")
    return {options.SECRET_KEY.name: _AccessOptions.password}


def hint(problem: str) -> str:
    """Return what to do about a problem of a command that may lack a user or TLS; "" otherwise."""
    try:
        access = chosen()
    except MqlakeError:
        return ""
    if problem.endswith(NO_USER) and access.credentials is None:
        return " (set MQLAKE_ACCESS_KEY and MQLAKE_SECRET_KEY to a user and its password)"
    if problem.endswith(LOST) and access.tls is None:
        return " (if the server accepts only TLS, name its authority: mqlake --tls-ca FILE …)"
    return ""
