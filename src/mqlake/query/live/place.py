"""Decide whether a query reads a running cluster or store directories.

Spark plans each query in two new processes, which import what the options need and no more.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from mqlake.errors import FormatError

ENVIRONMENT = "NAMESRV_ADDR"
"""The variable that names the name servers, as for RocketMQ's own clients."""

NAME_SERVER = ("nameServer", "namesrvAddr", "rocketmq.namesrvAddr")
"""The option that names them, and its other names."""


def is_live(given: Mapping[str, str]) -> bool:
    """Return whether options name a running cluster, not a store directory.

    Raises:
        FormatError: the options name both.
    """
    names = {name.lower(): name for name in given}
    servers = [names[each.lower()] for each in NAME_SERVER if each.lower() in names]
    place = next((names[each] for each in ("path", "paths") if each in names), None)
    if servers and place:
        raise FormatError(
            f"options {place} and {servers[0]} cannot be combined: give a store directory, or "
            "the name servers of a running cluster"
        )
    return bool(servers) or (place is None and bool(os.environ.get(ENVIRONMENT)))
