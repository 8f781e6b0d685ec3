"""How far the log is, and what the disk holds. Upstream: `DefaultStoreMetricsManager`."""

from __future__ import annotations

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.errors import DiskError
from mqlake.metrics.metric import Sample, counter, gauge, histogram
from mqlake.remoting.slices import Job

_STORAGE = ("storage_type", "storage_medium")
_LOCAL = ("local", "disk")
_BYTES, _MS = "bytes", "milliseconds"

STORAGE_SIZE = gauge(
    "rocketmq_storage_size",
    "Used bytes of the file system that holds the store.",
    _BYTES,
    _STORAGE,
)
FLUSH_BEHIND = gauge(
    "rocketmq_storage_flush_behind_bytes",
    "Bytes of the log that are not yet durable.",
    _BYTES,
    _STORAGE,
)
DISPATCH_BEHIND = gauge(
    "rocketmq_storage_dispatch_behind_bytes",
    "Bytes of the log that have no queue and index entries yet.",
    _BYTES,
    _STORAGE,
)
RESERVE_TIME = gauge(
    "rocketmq_storage_message_reserve_time", "Age of the oldest message.", _MS, _STORAGE
)
DISPATCH_LAG = gauge(
    "mqlake_dispatch_lag",
    "Age of the oldest message that is confirmed, but not dispatched yet.",
    "seconds",
)
SYNC_TIMES = histogram("mqlake_log_sync", "Time of each sync of a file of the log.", "seconds")
TICK_SIZES = histogram(
    "mqlake_tick_messages",
    "Messages that one tick of the store dispatched, of ticks that dispatched any.",
)
WRITABLE = gauge("mqlake_store_writable", "1 if the store accepts messages, 0 if not.")
DISPATCH_FAILURES = counter("mqlake_dispatch_failures_total", "Dispatches that failed.")
SERVICE_FAILURES = counter(
    "mqlake_service_failures_total",
    "How often a periodic service failed.",
    labels=("service",),
)
SET_ASIDE = counter(
    "mqlake_messages_set_aside_total", "Messages that could not be put where they belong."
)
MOVED = counter(
    "mqlake_messages_moved_total",
    "Messages put into another queue, because their topic has lost their own queue.",
)
OF_DELETED = counter(
    "mqlake_messages_of_deleted_topics_total",
    "Waiting messages that were dropped because their topic was deleted.",
)


def samples(state: BrokerState, runtime: BrokerRuntime) -> Job[list[Sample]]:
    """Return the state of the store."""
    store = state.store
    marks, health, redelivery = store.watermarks, store.health, store.redelivery
    found = [
        Sample(FLUSH_BEHIND, marks.end - marks.flushed, _LOCAL),
        Sample(DISPATCH_BEHIND, marks.end - marks.dispatched, _LOCAL),
        Sample(SYNC_TIMES, store.sync.times.copy()),
        Sample(TICK_SIZES, store.dispatching.sizes.copy()),
        Sample(WRITABLE, health.not_writable is None),
        Sample(DISPATCH_FAILURES, health.dispatch_failures),
        Sample(SET_ASIDE, redelivery.set_aside),
        Sample(MOVED, redelivery.moved),
        Sample(OF_DELETED, redelivery.dead),
    ]
    try:
        usage = store.directory.usage()
    except DiskError:
        pass  # The sample is missing, as the number is.
    else:
        found.append(Sample(STORAGE_SIZE, usage.total - usage.free, _LOCAL))
    yield
    behind = None
    if marks.dispatched < marks.confirmed:
        behind = store.reads.record_at(marks.dispatched)
    age = store.clock.milliseconds() - behind.store_timestamp if behind is not None else 0
    found.append(Sample(DISPATCH_LAG, max(0, age) / 1000))
    yield
    if (first := store.reads.record_at(marks.min_offset)) is not None:
        age = store.clock.milliseconds() - first.store_timestamp
        found.append(Sample(RESERVE_TIME, age, _LOCAL))
    services = (*health.services, *runtime.repeating)
    found.extend(Sample(SERVICE_FAILURES, each.failures, (each.name,)) for each in services)
    return found
