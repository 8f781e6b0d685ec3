"""The default ports, and name servers."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence

from mqlake.broker.settings import FAST_PORT_DISTANCE, BrokerSettings
from mqlake.doctor.finding import CheckResult, Severity
from mqlake.errors import MqlakeError
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.remoting.client import split_address

_BROKER = BrokerSettings().listen_port
PORTS = {
    NamesrvSettings().listen_port: "name server",
    _BROKER - FAST_PORT_DISTANCE: "broker, without waiting",
    _BROKER: "broker",
    _BROKER + 1: "slaves",
}
"""The ports that a name server and a broker listen on by default."""
_SECONDS = 3.0


def ports() -> CheckResult:
    """Report which of the default ports are in use."""
    used = [f"{port} ({what})" for port, what in PORTS.items() if _is_used(port)]
    if not used:
        listed = ", ".join(map(str, PORTS))
        return CheckResult("ports", Severity.OK, f"free: {listed}")
    found = f"in use: {', '.join(used)}"
    mend = "if this is not your broker: mqlake broker --port PORT, mqlake namesrv --port PORT"
    return CheckResult("ports", Severity.NOTE, found, mend)


def name_servers(addresses: Sequence[str]) -> Iterator[CheckResult]:
    """Report for each "host:port" whether it accepts a connection."""
    for address in addresses:
        name = f"name server {address}"
        try:
            with socket.create_connection(split_address(address), _SECONDS):
                yield CheckResult(name, Severity.OK, "it accepts connections")
        except (OSError, MqlakeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            yield CheckResult(name, Severity.PROBLEM, f"no connection: {reason}", "mqlake namesrv")


def _is_used(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return True
        return False
