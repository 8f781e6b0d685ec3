"""The commands that pages copy: each reaches the cluster as the console does, when it is pasted.

A command has the options of TLS and the name of the user. It never has a password, which others
could read in the list of processes: `mqlake` asks for it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from starlette.requests import Request

from mqlake.client.access_options import ACCESS_KEY, CA, CERT, KEY, TLS, VERIFY
from mqlake.console.state import console_of, session_of
from mqlake.remoting.tls.options import ClientTls, Verify


def shell_line(words: Iterable[object]) -> str:
    """Return a command line that a shell takes apart into these words again."""
    return shlex.join(str(word) for word in words)


def admin_line(request: Request, name: str, *words: object) -> str:
    """Return a command of `mqlake admin` about the cluster.

    Args:
        words: its options, without the name servers.
    """
    names = console_of(request).options.name_servers
    return cluster_line(request, "admin", name, "-n", names, *words)


def cluster_line(request: Request, *words: object) -> str:
    """Return a command of mqlake that connects to the cluster as this visitor."""
    access, session = console_of(request).options.access, session_of(request)
    credentials = session.credentials or access.credentials
    line = shell_line(["mqlake", *_tls_words(access.tls), *words])
    if credentials is None:
        return line
    return f"{ACCESS_KEY.variable}={shlex.quote(credentials.access_key)} {line}"


def _tls_words(tls: ClientTls | None) -> list[str]:
    """Return the options of `mqlake` for TLS. Paths are absolute: it may run in another folder."""
    if tls is None:
        return []
    files = ((CA, tls.ca), (CERT, tls.cert), (KEY, tls.key))
    words = [
        word for option, path in files if path for word in (option.flag, str(Path(path).absolute()))
    ]
    if tls.verify is not Verify.FULL:
        words += [VERIFY.flag, tls.verify.value]
    return words or [TLS.flag]
