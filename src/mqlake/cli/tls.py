"""The options of `mqlake` about TLS, which apply to all connections of its command."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from mqlake.remoting.tls.options import ClientTls

Tls = Annotated[
    bool,
    typer.Option(
        "--tls",
        envvar="MQLAKE_TLS",
        help="Use TLS to name servers and brokers; implied by the other options about TLS.",
    ),
]
Ca = Annotated[
    str,
    typer.Option(
        "--tls-ca",
        envvar="MQLAKE_TLS_CA",
        metavar="FILE",
        help="Certificates of trusted authorities (PEM); default: those of the system.",
        show_default=False,
    ),
]
Cert = Annotated[
    str,
    typer.Option(
        "--tls-cert",
        envvar="MQLAKE_TLS_CERT",
        metavar="FILE",
        help="Certificate to present (PEM).",
        show_default=False,
    ),
]
Key = Annotated[
    str,
    typer.Option(
        "--tls-key",
        envvar="MQLAKE_TLS_KEY",
        metavar="FILE",
        help="Private key of that certificate (PEM). The environment variable"
        " MQLAKE_TLS_KEY_PASSWORD has the password of an encrypted key.",
        show_default=False,
    ),
]
Verify = Annotated[
    Literal["full", "ca", "none"] | None,
    typer.Option(
        "--tls-verify",
        envvar="MQLAKE_TLS_VERIFY",
        help="What a server's certificate must have: a trusted signature and the server's name"
        " (full, the default), a trusted signature (ca), or nothing (none: for tests).",
        show_default=False,
    ),
]

_PASSWORD = "MQLAKE_TLS_KEY_PASSWORD"  # noqa: S105 (a name)


class _Chosen:
    """What the options say; a process runs one command at a time."""

    tls: ClientTls | None = None


def choose(*, tls: bool, ca: str, cert: str, key: str, verify: str | None) -> None:
    """Note the options for the command that follows them."""
    if not (tls or ca or cert or key or verify):
        _Chosen.tls = None
        return
    from mqlake.remoting.tls import options

    _Chosen.tls = options.ClientTls(
        ca=ca,
        cert=cert,
        key=key,
        key_password=os.environ.get(_PASSWORD, ""),
        verify=options.Verify(verify or "full"),
    )


def chosen() -> ClientTls | None:
    """Return how connections use TLS; None for clear text."""
    return _Chosen.tls
