"""How far the copies of the log are. RocketMQ has no such metrics."""

from __future__ import annotations

from mqlake.broker.state.broker_state import BrokerState
from mqlake.metrics.metric import Sample, gauge

IS_SLAVE = gauge("mqlake_slave", "1 if the broker is a slave now, 0 if it is a master.")
SLAVES = gauge("mqlake_slaves", "Slaves that are connected to this master.")
IN_SYNC = gauge("mqlake_slaves_in_sync", "Those of them that are in sync.")
SLAVE_BEHIND = gauge(
    "mqlake_slave_behind",
    "Bytes of the log that a slave has not acknowledged.",
    "bytes",
    ("slave",),
)
FOLLOWS = gauge("mqlake_follows_master", "1 if this slave receives its master's log, 0 if not.")


def samples(state: BrokerState) -> list[Sample]:
    """Return the slaves of a master, or whether a slave follows its master."""
    replication = state.replication
    found = [Sample(IS_SLAVE, replication.slave is not None)]
    if (slave := replication.slave) is not None:
        found.append(Sample(FOLLOWS, slave.problem is None))
    if (server := replication.server) is not None:
        connections = list(server.connections)
        found += [Sample(SLAVES, len(connections)), Sample(IN_SYNC, server.in_sync)]
        found += [Sample(SLAVE_BEHIND, max(0, each.lacks), (each.address,)) for each in connections]
    return found
