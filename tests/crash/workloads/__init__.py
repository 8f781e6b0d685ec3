"""Scripts for all that writes, each in a few dozen operations on files of a few kilobytes."""

from __future__ import annotations

from collections.abc import Mapping

from tests.crash.exchange_workload import EXCHANGE_WORKLOADS
from tests.crash.kafka_workload import KAFKA_WORKLOADS
from tests.crash.simulator import Workload
from tests.crash.sink_workload import SINK_WORKLOADS
from tests.crash.store_workload import WORKLOADS
from tests.crash.workloads import (
    appends,
    batches,
    config,
    deletions,
    derived,
    exchange,
    kafka,
    later,
    light,
    odd,
    retention,
    rolls,
    stops,
)
from tests.crash.workloads.drawn import PREFIX, drawn

ALL: Mapping[str, Workload] = {
    **WORKLOADS,
    **KAFKA_WORKLOADS,
    **EXCHANGE_WORKLOADS,
    **SINK_WORKLOADS,
}
"""Those of a live store (`WORKLOADS`), and those of every other writer."""

__all__ = [
    "ALL",
    "PREFIX",
    "WORKLOADS",
    "appends",
    "batches",
    "config",
    "deletions",
    "derived",
    "exchange",
    "find",
    "kafka",
    "later",
    "light",
    "odd",
    "retention",
    "rolls",
    "stops",
]


def find(name: str) -> Workload:
    """Return the workload of a name: one of ALL, or `drawn-N`.

    Raises:
        KeyError: there is none.
    """
    number = name.removeprefix(PREFIX)
    return drawn(int(number)) if number != name and number.isdigit() else ALL[name]
