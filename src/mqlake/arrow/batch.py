"""Messages of one queue that are handed over together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mqlake.arrow.record_run import RecordRun
from mqlake.protocol.bodies.message_queue import MessageQueue


class ArrowBatch:
    """Messages of one queue as columns, to be finished by `ack` or `retry_later`.

    Until then the group's offset does not pass them.

    Attributes:
        records: a `pyarrow.RecordBatch` with the columns of `mqlake.dispatch.arrow.SCHEMA`: the
            message's topic as it was subscribed to, and its body decompressed.
        queue: where they were read.
        faults: why the body in a row is not what the producer sent: it cannot be decompressed, or
            its checksum is wrong.
    """

    __slots__ = ("_runs", "faults", "queue", "records")

    def __init__(self, runs: Sequence[RecordRun], records: Any, faults: Mapping[int, str]) -> None:
        self._runs, self.records, self.faults = runs, records, faults
        self.queue: MessageQueue = runs[0].queue

    def __len__(self) -> int:
        return len(self.records)

    async def ack(self) -> bool:
        """Say that all of them are done.

        Returns:
            False where that does not count for some: another consumer has the queue by now, and may
            have the messages, too; or they were finished before.
        """
        return all([await run.ack() for run in self._runs])

    async def retry_later(self, delay_level: int = 0) -> bool:
        """Have all of them come again: by the group's retry topic, or, in order, at the same place.

        Broadcast messages do not come again. In order, the column `reconsumeTimes` stays as it is.

        Args:
            delay_level: as of `ConsumedMessage.retry_later`.

        Returns:
            False as `ack`.
        """
        return all([await run.retry_later(delay_level) for run in self._runs])
