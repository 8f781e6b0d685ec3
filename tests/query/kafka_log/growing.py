"""A log directory that grows, and an engine that treats a stream as Spark does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from mqlake.formats.kafka.record_batch import NewRecord
from mqlake.kafka.settings import LogSettings
from mqlake.kafka.write.owned_log_directory import OwnedLogDirectory
from mqlake.query.kafka_log.options import KafkaLogReadOptions
from mqlake.query.kafka_log.stream import KafkaStream
from tests.query.kafka_log.rows import Row, task_rows

START = 1_700_000_000_000
SETTINGS = LogSettings(segment_bytes=2000, index_interval_bytes=200)


class GrowingLogs:
    """Partitions of small segments; records are numbered in their keys, a second apart."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.keys: list[bytes] = []

    def grow(self, count: int, *partitions: tuple[str, int]) -> None:
        """Append records, in batches of up to 5, to partitions in turn; (a, 0) if none is named."""
        with OwnedLogDirectory(self.path) as logs:
            opened = [logs.partition(*name, SETTINGS) for name in partitions or [("a", 0)]]
            for number in range(0, count, 5):
                records = [self._record() for _ in range(min(5, count - number))]
                opened[number // 5 % len(opened)].append(records)

    def _record(self) -> NewRecord:
        number = len(self.keys)
        self.keys.append(b"%05d" % number)
        return NewRecord(START + 1000 * number, self.keys[-1], b"value" * (number % 9))

    def drop_first_segment(self, name: str = "a-0") -> int:
        """Delete the oldest segment, as retention does; return where the partition begins then."""
        first, second = sorted((self.path / name).glob("*.log"))[:2]
        for file in (self.path / name).glob(f"{first.stem}.*"):
            file.unlink()
        return int(second.stem)

    def drop(self, name: str) -> None:
        """Delete a partition."""
        shutil.rmtree(self.path / name)


class Engine:
    """Runs micro-batches with a checkpoint, as Spark does, down to the JSON in between."""

    def __init__(self, options: KafkaLogReadOptions) -> None:
        self._options = options
        self._offsets: list[str] = []
        self.sink: list[list[Row]] = []
        self.stream = self._new_stream()

    def _new_stream(self) -> KafkaStream:
        return KafkaStream(self._options)

    def restart(self, options: KafkaLogReadOptions | None = None) -> None:
        """Start again from the checkpoint."""
        self._options = options or self._options
        self.stream = self._new_stream()

    def trigger(self) -> int:
        """Run a micro-batch if there is one; return its rows' number."""
        if not self._offsets:
            self._offsets.append(json.dumps(self.stream.position()))
        start = json.loads(self._offsets[-1])
        end = self.stream.position(start, self.stream.most)
        if end == start:
            return 0
        self._offsets.append(json.dumps(end))
        rows = self.rows(start, json.loads(self._offsets[-1]))
        self.sink.append(rows)
        self.stream.done(end)
        return len(rows)

    def rows(self, start: dict[str, Any], end: dict[str, Any]) -> list[Row]:
        """Return the rows of a micro-batch."""
        return [
            row for task in self.stream.plan(start, end) for row in task_rows(task, self._options)
        ]

    def run_all(self) -> list[int]:
        """Run micro-batches until there is nothing new; return their numbers of rows."""
        found: list[int] = []
        while count := self.trigger():
            found.append(count)
        return found

    @property
    def position(self) -> Any:
        """What the checkpoint holds."""
        return json.loads(self._offsets[-1])

    @property
    def keys(self) -> list[bytes]:
        """The keys of all rows, sorted."""
        return sorted(row["key"] for rows in self.sink for row in rows)
