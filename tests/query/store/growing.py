"""A store that grows as a broker's does, and an engine that treats a stream as Spark does."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Generic, TypeVar

from mqlake.query.reading.source import Stream
from mqlake.query.store.options import StoreReadOptions
from mqlake.query.store.stream import LogStream
from tests.query.store.rows import Row, in_order, task_rows
from tests.store.make_store import START, StoreMaker


class GrowingStore:
    """A store of small segments on disk; messages are numbered in their bodies."""

    def __init__(self, path: Path, seed: int = 0, *, dispatched: bool = True) -> None:
        self.path = path
        self.maker = StoreMaker(segment_size=4096)
        self._chance = random.Random(seed)
        self._dispatched = dispatched
        self._count = 0

    def grow(self, count: int, topics: tuple[str, ...] = ("A", "B")) -> None:
        """Append messages."""
        for _ in range(count):
            self.maker.append(
                topic=self._chance.choice(topics),
                queue_id=self._chance.randrange(3),
                time=START + self._count,
                body=str(self._count).encode() * self._chance.randint(1, 40),
                KEYS=f"key-{self._count}",
            )
            self._count += 1
        files = self.maker.files() if self._dispatched else self.maker.log_files()
        for path, data in files.items():
            self._put(self.path / path, data)

    def _put(self, path: Path, data: bytes) -> None:
        """Write a file so that no reader, in whatever process, finds it shorter than before."""
        try:
            with path.open("r+b") as file:
                file.write(data)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            new = self.path / "new-file"
            new.write_bytes(data)
            new.replace(path)

    def drop_first_segment(self) -> int:
        """Delete the oldest segment; return where the log begins then."""
        first, second = sorted((self.path / "commitlog").iterdir())[:2]
        first.unlink()
        return int(second.name)

    @property
    def keys(self) -> list[str]:
        """The keys of all messages, in log order."""
        return [f"key-{number}" for number in range(self._count)]

    @property
    def messages(self) -> list[Any]:
        """What was appended, in log order."""
        return self.maker.messages


Options = TypeVar("Options")


class KilledError(Exception):
    """The engine has been killed."""


class BaseEngine(Generic[Options]):
    """Runs micro-batches with a checkpoint, as Spark does, down to the JSON in between.

    The sink keeps rows by batch number, so that a batch that is run again replaces itself.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._offsets: list[str] = []
        self._committed = 0
        self.sink: dict[int, list[Row]] = {}
        self.stream = self._new_stream()

    def _new_stream(self) -> Stream[Any]:
        raise NotImplementedError

    def _rows(self, task: Any) -> Iterable[Row]:
        raise NotImplementedError

    def restart(self, options: Options | None = None) -> None:
        """Start again from the checkpoint; a batch that was not committed runs again."""
        self._options = options or self._options
        self.stream = self._new_stream()
        if self._committed < len(self._offsets) - 1:
            self._run(kill_at=None)

    def trigger(self, kill_at: str | None = None) -> int:
        """Run a micro-batch if there is one; return its rows' number. `kill_at` names a moment."""
        if not self._offsets:
            self._offsets.append(json.dumps(self.stream.position()))
        start = json.loads(self._offsets[-1])
        end = self.stream.position(start, self.stream.most)
        if end == start:
            return 0
        self._offsets.append(json.dumps(end))
        return self._run(kill_at)

    def _run(self, kill_at: str | None) -> int:
        number = self._committed
        start, end = (json.loads(text) for text in self._offsets[number : number + 2])
        if kill_at == "planned":
            raise KilledError
        rows = [row for task in self.stream.plan(start, end) for row in self._rows(task)]
        self.sink[number] = rows
        if kill_at == "written":
            raise KilledError
        self._committed += 1
        self.stream.done(end)
        return len(rows)

    def run_all(self) -> None:
        """Run micro-batches until there is nothing new."""
        while self.trigger():
            pass

    @property
    def keys(self) -> list[str]:
        """The keys of all rows, in log order."""
        rows = [row for batch in self.sink.values() for row in batch]
        return [row["keys"][0] for row in in_order(rows)]


class Engine(BaseEngine[StoreReadOptions]):
    """Runs micro-batches over a store directory."""

    def _new_stream(self) -> LogStream:
        return LogStream(self._options)

    def _rows(self, task: Any) -> Iterable[Row]:
        return task_rows(task, self._options)
