"""The running broker of a store directory, and the settings that it has."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from mqlake.admin import brokers
from mqlake.console.cluster.view import ClusterView
from mqlake.errors import MqlakeError

MOST_BROKERS: Final = 20
"""Brokers that are asked; a console that knows more shows the store's own settings."""
_SECONDS: Final = 30.0


async def broker_settings(cluster: ClusterView, path: Path) -> tuple[str, Mapping[str, str]] | None:
    """Return the name and the settings of the broker that has a store directory.

    None if no broker of the cluster on this machine has it, or none of them answers.
    """
    try:
        masters = await cluster.masters()
    except MqlakeError:
        return None
    wanted = await asyncio.to_thread(os.path.realpath, path)
    for name in list(masters)[:MOST_BROKERS]:
        ask = partial(brokers.config, cluster.admin, name)
        try:
            found = await cluster.kept.get(("settings of", name), _SECONDS, ask)
        except MqlakeError:
            continue
        stated = found.get("storePathRootDir", "")
        if await asyncio.to_thread(os.path.realpath, stated) == wanted:
            return name, found
    return None
