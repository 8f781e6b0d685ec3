"""How much of the log's end is assumed to be in the machine's memory."""

from __future__ import annotations

import os

from mqlake.broker.settings import BrokerSettings

_MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def bytes_in_memory(settings: BrokerSettings) -> int:
    """Return how many bytes at the log's end count as in memory.

    Upstream: `accessMessageInMemoryMaxRatio`.
    """
    return _MEMORY * settings.access_message_in_memory_max_ratio // 100
