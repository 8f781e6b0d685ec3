"""All workloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.comparison import (
    broker,
    consumption,
    derived,
    kafka,
    local,
    roles,
    sink,
    slave,
    store,
)
from tests.comparison.run import Workload

_BY_MODULE: Mapping[str, Sequence[Workload]] = {
    store.__name__: store.STORE_WORKLOADS,
    roles.__name__: roles.ROLE_WORKLOADS,
    broker.__name__: broker.WIRE_WORKLOADS,
    consumption.__name__: consumption.CONSUMPTION_WORKLOADS,
    slave.__name__: slave.SLAVE_WORKLOADS,
    kafka.__name__: kafka.KAFKA_WORKLOADS,
    sink.__name__: sink.SINKS,
    local.__name__: local.LOCAL_WORKLOADS,
    derived.__name__: derived.DERIVED_WORKLOADS,
}

ALL: Sequence[Workload] = [one for workloads in _BY_MODULE.values() for one in workloads]
MODULES = {one.name: module for module, workloads in _BY_MODULE.items() for one in workloads}
"""The module in which each workload is written: what it imports is what is compared."""
