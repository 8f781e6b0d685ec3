"""What a broker knows of a store (docs/architecture.md, "A broker knows the store by its port").

`MessageStore` is a `Store`. A broker imports from `mqlake.store` only this module and modules of
plain values: `tests/broker/test_store_port.py` checks that. Upstream: `MessageStore`.
"""

from __future__ import annotations

from asyncio import Future
from typing import Protocol

from mqlake.errors import StoreError
from mqlake.storage.clock import Clock
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.append.outside_puts import OutsidePuts
from mqlake.store.config.consumer_offsets import ConsumerOffsetTable
from mqlake.store.config_store import ConfigStore
from mqlake.store.core.health import Health
from mqlake.store.delivery.after_flush import AfterFlush
from mqlake.store.delivery.redelivery import Redelivery
from mqlake.store.delivery.scheduled import ScheduledMessages
from mqlake.store.delivery.timers import TimerMessages
from mqlake.store.delivery.transactions import CheckBack, Ended, EndStatus, Transactions
from mqlake.store.incarnations.table import OwnedIncarnations
from mqlake.store.light.light_queues import LightQueues
from mqlake.store.log.scan import Head
from mqlake.store.loop.appends import Appends
from mqlake.store.loop.dispatching import Dispatching
from mqlake.store.loop.keeping import DurableTable, Keeping
from mqlake.store.loop.log_copying import LogCopying
from mqlake.store.loop.log_sync import LogSync
from mqlake.store.loop.removals import Removals
from mqlake.store.queues.queue_offsets import QueueOffsets
from mqlake.store.queues.time_search import Boundary
from mqlake.store.reads.arrivals import Arrivals, Listener
from mqlake.store.reads.live_reads import LiveReads
from mqlake.store.reads.live_result import LiveGetResult
from mqlake.store.reads.mapped_files import MappedFiles, MappedView
from mqlake.store.recovery.log_walk import Progress
from mqlake.store.replication.copies import Copies, Copy
from mqlake.store.replication.cut_log import cut_log
from mqlake.store.replication.epochs import Epochs, common_end
from mqlake.store.replication.in_sync_set import InSyncSet
from mqlake.store.retention.retention import Retention
from mqlake.store.services import Service
from mqlake.store.watermarks import Watermarks

__all__ = [
    "AfterFlush",
    "Appends",
    "Arrivals",
    "Boundary",
    "CheckBack",
    "ConsumerOffsetTable",
    "Copies",
    "Copy",
    "DurableTable",
    "EndStatus",
    "Ended",
    "Epochs",
    "Head",
    "InSyncSet",
    "LightQueues",
    "Listener",
    "LiveGetResult",
    "LiveReads",
    "LogCopying",
    "MappedFiles",
    "MappedView",
    "OutsidePuts",
    "Progress",
    "Service",
    "Store",
    "Watermarks",
    "common_end",
    "cut_log",
]


class Store(Protocol):
    """The parts of a store that this process owns: see `MessageStore`, which says what each is."""

    directory: OwnedDirectory
    clock: Clock
    watermarks: Watermarks
    reads: LiveReads
    light: LightQueues | None
    offsets: QueueOffsets
    config: ConfigStore
    incarnations: OwnedIncarnations
    appends: Appends
    redelivery: Redelivery
    scheduled: ScheduledMessages
    timers: TimerMessages
    transactions: Transactions
    retention: Retention
    health: Health
    copies: Copies
    copying: LogCopying
    dispatching: Dispatching
    sync: LogSync
    keeping: Keeping
    removals: Removals
    failed: Future[StoreError]
