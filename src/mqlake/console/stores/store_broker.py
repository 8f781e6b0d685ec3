"""The running broker of a store directory, and the settings that it has."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from mqlake.console.cluster.brokers import settings_of
from mqlake.console.cluster.view import ClusterView
from mqlake.errors import MqlakeError

MOST_BROKERS: Final = 20
"""Brokers that are asked; a console that knows more shows the store's own settings."""


class OwnBroker(NamedTuple):
    """The running broker of a store directory.

    Attributes:
        settings: by their names in `broker.conf`.
    """

    name: str
    address: str
    settings: Mapping[str, str]


async def broker_of_store(cluster: ClusterView, path: Path) -> OwnBroker | None:
    """Return the broker that has a store directory open, which may be a slave.

    None if no broker of the cluster on this machine has it, or none of them answers.
    """
    try:
        known = [
            (data.broker_name, address)
            for data in await cluster.brokers()
            for address in data.broker_addrs.values()
        ]
    except MqlakeError:
        return None
    here = await asyncio.to_thread(_own_addresses)
    wanted = await asyncio.to_thread(os.path.realpath, path)
    own = [each for each in known if each[1].rpartition(":")[0] in here][:MOST_BROKERS]
    settings = await asyncio.gather(*(_settings(cluster, address) for _, address in own))
    for (name, address), found in zip(own, settings, strict=True):
        stated = found.get("storePathRootDir", "")
        if stated and await asyncio.to_thread(os.path.realpath, stated) == wanted:
            return OwnBroker(name, address, found)
    return None


async def _settings(cluster: ClusterView, address: str) -> Mapping[str, str]:
    try:
        return await settings_of(cluster, address)
    except MqlakeError:
        return {}


def _own_addresses() -> frozenset[str]:
    """Return the IPv4 addresses of this machine: brokers of others may have the same path."""
    found = {"127.0.0.1", "localhost"}
    with suppress(OSError):
        infos = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
        found |= {str(info[4][0]) for info in infos}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
        probe.connect(("192.0.2.1", 9))  # No packet is sent; the system chooses an address.
        found.add(probe.getsockname()[0])
    return frozenset(found)
