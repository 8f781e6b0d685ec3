"""The metrics of a broker, by the sections of docs/metrics.md."""

from __future__ import annotations

from types import ModuleType
from typing import Final

from mqlake.broker.metrics import (
    connections,
    delivery,
    lag,
    observed_broker,
    pops,
    replication,
    storage,
    traffic,
)
from mqlake.metrics import loop_lag
from mqlake.metrics.metric import MetricFamily
from mqlake.remoting.metrics import calls, requests

GROUPS: Final[tuple[tuple[str, tuple[ModuleType, ...]], ...]] = (
    ("Messages", (traffic,)),
    ("Consumers", (lag,)),
    ("Clients and requests", (connections, requests, calls)),
    ("Store", (storage,)),
    ("Transactions and delivery times", (delivery,)),
    ("Pops", (pops,)),
    ("Replication", (replication,)),
    ("Process", (loop_lag, observed_broker)),
)
"""The modules that define the metrics of each section."""


def metrics_of(module: ModuleType) -> list[MetricFamily]:
    """Return the metrics that a module defines, in their order."""
    return [each for each in vars(module).values() if isinstance(each, MetricFamily)]
