"""Messages of one queue that are handed over together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mqlake.arrow.record_run import RecordRun
from mqlake.protocol.bodies.message_queue import MessageQueue


class ArrowBatch:
    """Messages of one queue as columns, to be finished by `ack` or `retry_later`.

    Until then, the group's offset does not pass them.

    Attributes:
        records: a `pyarrow.RecordBatch` with the columns of `mqlake.dispatch.arrow.SCHEMA`: the
            topic is the one that was subscribed to, and bodies are decompressed.
        queue: the queue that they were read from.
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
        """Acknowledge all of them.

        Returns:
            False if that does not count for some: another consumer owns the queue now, and may
            receive the messages, too; or they were finished before.
        """
        return all([await run.ack() for run in self._runs])

    async def retry_later(self, delay_level: int = 0) -> bool:
        """Have all redelivered: through the group's retry topic or, in order, at the same position.

        Broadcast messages are not redelivered. In order, the column `reconsumeTimes` does not
        change.

        Args:
            delay_level: as for `ConsumedMessage.retry_later`.

        Returns:
            False as for `ack`.
        """
        return all([await run.retry_later(delay_level) for run in self._runs])
