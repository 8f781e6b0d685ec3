"""Tell systemd how a service is: it starts, runs, or stops (sd_notify(3), systemd.service(5))."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Self

_EXTENSION: Final = 30
"""Seconds by which the current start or stop may last longer."""
_MICROSECONDS: Final = 1_000_000


class Supervisor:
    """What a program tells the supervisor that has started it; nothing if that wants to know
    nothing. `with Supervisor() as supervisor:`, on the running event loop.

    While the program starts or stops, it asks for more time again and again: recovering a large
    store may take longer than systemd waits. While it runs, it sends what `WatchdogSec` demands. An
    event loop that does not run sends neither, so that systemd ends the program.

    Args:
        environment: where systemd names the socket, and the interval of its watchdog.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._loop = asyncio.get_running_loop()
        path = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + path[1:] if path.startswith("@") else path
        self._watchdog = _watchdog_of(environment)
        self._socket: socket.socket | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_running = False

    def __enter__(self) -> Self:
        if self._address:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            self._socket.setblocking(False)
            self._beat()
        return self

    def __exit__(self, *failure: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def ready(self) -> None:
        """Say that the start is complete."""
        self._is_running = True
        self._send("READY=1")

    def stopping(self) -> None:
        """Say that the program ends."""
        self._is_running = False
        self._send("STOPPING=1")

    def _beat(self) -> None:
        if not self._is_running:
            self._send(f"EXTEND_TIMEOUT_USEC={_EXTENSION * _MICROSECONDS}")
        if self._watchdog:
            self._send("WATCHDOG=1")
        pause = min(self._watchdog or _EXTENSION, _EXTENSION) / 3
        self._timer = self._loop.call_later(pause, self._beat)

    def _send(self, state: str) -> None:
        if self._socket is not None:
            with suppress(OSError):  # The supervisor is gone, or does not read.
                self._socket.sendto(state.encode(), self._address)


def _watchdog_of(environment: Mapping[str, str]) -> float:
    """Return the seconds within which the supervisor wants to hear something; 0 if it does not."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    text = environment.get("WATCHDOG_USEC", "")
    return int(text) / _MICROSECONDS if text.isascii() and text.isdigit() else 0.0
