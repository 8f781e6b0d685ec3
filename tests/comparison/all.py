"""All workloads."""

from __future__ import annotations

from collections.abc import Sequence

from tests.comparison.broker import WIRE_WORKLOADS
from tests.comparison.consumption import CONSUMPTION_WORKLOADS
from tests.comparison.derived import DERIVED_WORKLOADS
from tests.comparison.kafka import KAFKA_WORKLOADS
from tests.comparison.local import LOCAL_WORKLOADS
from tests.comparison.roles import ROLE_WORKLOADS
from tests.comparison.run import Workload
from tests.comparison.sink import SINKS
from tests.comparison.slave import SLAVE_WORKLOADS
from tests.comparison.store import STORE_WORKLOADS

ALL: Sequence[Workload] = [
    *STORE_WORKLOADS,
    *ROLE_WORKLOADS,
    *WIRE_WORKLOADS,
    *CONSUMPTION_WORKLOADS,
    *SLAVE_WORKLOADS,
    *KAFKA_WORKLOADS,
    *SINKS,
    *LOCAL_WORKLOADS,
    *DERIVED_WORKLOADS,
]
