"""An engine that treats the stream over brokers as Spark does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mqlake.query.live.options import LiveOptions
from mqlake.query.live.stream import LiveStream
from tests.query.live.rows import options_of, task_rows
from tests.query.store.growing import BaseEngine
from tests.query.store.rows import Row


class LiveEngine(BaseEngine[LiveOptions]):
    """Runs micro-batches over brokers."""

    def _new_stream(self) -> LiveStream:
        return LiveStream(self._options)

    def _rows(self, task: Any) -> Iterable[Row]:
        return task_rows(task, self._options)

    @property
    def sorted_keys(self) -> list[str]:
        """The keys of all rows."""
        return sorted(self.keys)


def asked(name_server: str, **options: Any) -> LiveOptions:
    """Return the options of a streaming query from the earliest message on."""
    given = {
        "startingOffsets": "earliest",
        "columns": "keys,topic,queueId,queueOffset,physicalOffset",
        "retryTimeout": "60s",
        **options,
    }
    return options_of(name_server, streaming=True, **given)
