"""Clients of a cluster, mqlake's or RocketMQ's: what producers, consumers and tools stand on.

`Cluster` asks name servers for routes and brokers, over one connection to each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.client.cluster import Cluster as Cluster
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "Cluster": "cluster",
        },
    )
