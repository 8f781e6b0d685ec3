"""The identity of a client (upstream: `ClientConfig.buildMQClientId`,
`NetworkUtil.getLocalAddress`).
"""

from __future__ import annotations

import os
import socket
from itertools import count

from mqlake.storage.clock import SystemClock

DEFAULT_INSTANCE = "DEFAULT"

_numbers = count()


def client_id(instance: str, unit: str | None = None, *, is_stable: bool = False) -> str:
    """Return the name under which brokers know a client: `address@instance[@unit]`.

    Args:
        instance: DEFAULT_INSTANCE for an instance name that no other process has.
        is_stable: the default instance has the same name after a restart, so that a broadcasting
            consumer finds its offsets.
    """
    if instance == DEFAULT_INSTANCE and not is_stable:
        instance = f"{os.getpid()}#{next(_numbers)}-{SystemClock().milliseconds()}"
    parts = [local_address(), instance]
    if unit:
        parts.append(unit)
    return "@".join(parts)


def local_address() -> str:
    """Return an address of this machine that others can reach; 127.0.0.1 if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent: the system only chooses the interface.
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
