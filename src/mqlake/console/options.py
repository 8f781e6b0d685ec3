"""What a console is started with."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from mqlake.client.access import ClientAccess
from mqlake.errors import MqlakeError

DEFAULT_PORT: Final = 8280
LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


class ConsoleOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a console runs.

    Attributes:
        name_servers: "host:port", several separated by `;`.
        stores: store directories that the console may read.
        tables: lake tables that `mqlake follow` writes, paths or URLs.
        archives: archives of these stores, paths or URLs.
        schemas: directory with the schemas of bodies; None without one.
        host: the address to listen on.
        port: the port to listen on, 0 for any free one.
        read_only: whether nobody may change anything.
        login: whether every visitor must log in as a user of the cluster.
        viewers: users who may look but change nothing.
        access: how name servers and brokers are reached. Its credentials sign requests only if no
            login is required.
        certificate, key: files (PEM) for HTTPS; empty for HTTP.
        broker_seconds: how long a page waits for a broker.
        idle_minutes: a session ends after this time without a request by the user.
        session_minutes: a session ends this long after the login.
    """

    name_servers: str
    stores: tuple[Path, ...] = ()
    tables: tuple[str, ...] = ()
    archives: tuple[str, ...] = ()
    schemas: Path | None = None
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    read_only: bool = False
    login: bool = False
    viewers: frozenset[str] = frozenset()
    access: ClientAccess = ClientAccess()
    certificate: str = ""
    key: str = ""
    broker_seconds: float = 3.0
    idle_minutes: int = 30
    session_minutes: int = 12 * 60

    def check(self) -> None:
        """Check that a stranger cannot reach a console without a login.

        Raises:
            MqlakeError: the address is not a loopback address, and no login is required.
        """
        if self.host not in LOOPBACK and not self.login:
            raise MqlakeError(
                f"--host {self.host}: other machines could change the cluster without a login;"
                " add --login, or leave the console on 127.0.0.1"
            )
        if self.viewers and not self.login:
            raise MqlakeError("--viewer has no effect without --login: nobody need log in")
        if bool(self.certificate) != bool(self.key):
            raise MqlakeError("HTTPS needs both --server-cert and --server-key")
