"""The files of a live store, once they are recovered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from mqlake.formats.dialect import Dialect
from mqlake.store.dispatch.dispatcher import Arrived, Dispatcher
from mqlake.store.incarnations.table import OwnedIncarnations
from mqlake.store.index.owned_index import OwnedIndex
from mqlake.store.light.light_queues import LightQueues
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.queues.owned_queues import OwnedQueues
from mqlake.store.queues.queue_offsets import QueueOffsets
from mqlake.store.recovery.checkpoint_file import CheckpointFile
from mqlake.store.recovery.recovery import Recovered


@dataclass(frozen=True)
class LiveFiles:
    """The files that a store writes, and what derives queues and index from the log.

    Attributes:
        offsets: the next offset of each queue.
        dialect: the RocketMQ version whose index rules apply.
        light: the light queues, None if the store derives none.
    """

    log: OwnedCommitLog
    queues: OwnedQueues
    index: OwnedIndex
    offsets: QueueOffsets
    checkpoint: CheckpointFile
    incarnations: OwnedIncarnations
    dispatcher: Dispatcher
    dialect: Dialect
    light: LightQueues | None

    @classmethod
    def of(
        cls,
        found: Recovered,
        message_delay_level: str,
        *,
        has_batches: Callable[[str], bool],
        on_batches: Callable[[], object],
        arrived: Arrived,
        on_restart: Callable[[str, int], object],
    ) -> Self:
        """Return what recovery has found, to be used from now on.

        Args:
            message_delay_level: the setting of that name.
            has_batches, on_batches: see `OwnedQueues`.
            arrived, on_restart: see `Dispatcher`.
        """
        found.queues.serve(has_batches, on_batches)
        dispatcher = found.dispatcher(
            found.log, message_delay_level, arrived=arrived, on_restart=on_restart
        )
        return cls(
            log=found.log,
            queues=found.queues,
            index=found.index,
            offsets=found.offsets,
            checkpoint=found.checkpoint,
            incarnations=found.incarnations,
            dispatcher=dispatcher,
            dialect=found.report.dialect,
            light=found.light,
        )
