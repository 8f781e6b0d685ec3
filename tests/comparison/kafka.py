"""A Kafka log directory that is written: appended to, rolled, flushed, cut, stopped, killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mqlake.formats.kafka.record_batch import NewRecord
from mqlake.kafka.log.log_directory import LogDirectory
from mqlake.kafka.settings import LogSettings
from mqlake.kafka.write.owned_log_directory import OwnedLogDirectory
from mqlake.kafka.write.owned_partition import OwnedPartition
from tests.comparison.disk_world import FAILURES, DiskWorld
from tests.comparison.run import Step, View, World
from tests.crash.disk import RecordedDisk
from tests.crash.kafka_workload import SMALL, TOPIC


class KafkaSubject:
    """A log directory with one partition, and who writes it."""

    def __init__(self, world: DiskWorld, script: Callable[[KafkaSubject], Iterator[Step]]) -> None:
        self.world, self._script = world, script
        self._logs: OwnedLogDirectory | None = None
        self._partition: OwnedPartition | None = None
        self._end = 0

    @property
    def partition(self) -> OwnedPartition:
        """The partition; it is opened if it is not open."""
        if self._partition is None:
            self._start()
        assert self._partition is not None
        return self._partition

    def _start(self) -> None:
        logs = OwnedLogDirectory(self.world.disk, clock=self.world.clock)
        logs.__enter__()
        try:
            self._partition = logs.partition(TOPIC, 0, SMALL)
        except BaseException:
            self.world.disk.abandon()  # The process ends.
            raise
        self._logs = logs

    def steps(self) -> Iterator[Step]:
        yield Step("start", lambda: self.partition)
        yield from self._script(self)
        yield Step("stop", self._stop)
        yield Step("start again", lambda: self.partition)

    def look(self) -> View | None:
        if self._partition is None:
            return None
        return _look_at(self.world.disk.bystander())

    def left(self) -> View:
        disk = self.world.left()
        logs = OwnedLogDirectory(disk, clock=self.world.clock)
        with logs:
            logs.partition(TOPIC, 0, SMALL)
            return _look_at(disk.bystander())

    def revive(self) -> None:
        self._partition = self._logs = None
        self._start()

    def close(self) -> None:
        self._partition = self._logs = None

    # Steps

    def append(self, count: int = 3, size: int = 60) -> Step:
        start, self._end = self._end, self._end + count
        records = [
            NewRecord(1000 + number, b"%d" % number, b"0123456789" * (size // 10))
            for number in range(start, self._end)
        ]
        return Step(f"append {start}", lambda: self.partition.append(records), is_atomic=True)

    def flush(self) -> Step:
        return Step("flush", lambda: self.partition.flush())  # noqa: PLW0108

    def roll(self) -> Step:
        return Step("roll", lambda: self.partition.roll())  # noqa: PLW0108

    def truncate(self, offset: int) -> Step:
        self._end = offset
        return Step(f"cut to {offset}", lambda: self.partition.truncate_to(offset))

    def restart(self) -> Step:
        def act() -> None:
            self._stop()
            _ = self.partition

        return Step("restart", act)

    def kill(self) -> Step:
        def act() -> None:
            self._partition = self._logs = None
            self.world.disk.abandon()
            _ = self.partition

        return Step("kill", act)

    def _stop(self) -> None:
        _ = self.partition
        logs, self._logs, self._partition = self._logs, None, None
        assert logs is not None
        logs.__exit__(None, None, None)


def _look_at(disk: RecordedDisk) -> View:
    with LogDirectory(disk).partition(TOPIC, 0) as reader:
        keys = tuple(int(record.key or b"-1") for record in reader.records())
        return {"records": keys, "from": reader.log_start_offset, "to": reader.log_end_offset}


@dataclass
class KafkaWorkload:
    """A script for a log directory."""

    name: str
    script: Callable[[KafkaSubject], Iterator[Step]]
    settings: LogSettings = SMALL
    failures: Sequence[str] = FAILURES

    def begin(self, failure: str, at: int) -> tuple[World, KafkaSubject]:
        world = DiskWorld(failure, at)
        return world, KafkaSubject(world, self.script)


def _appends(s: KafkaSubject) -> Iterator[Step]:
    for number in range(9):
        yield s.append(2, 200)
        if number % 3 == 1:
            yield s.flush()
    yield s.roll()
    yield s.append()


def _starts(s: KafkaSubject) -> Iterator[Step]:
    for _ in range(2):
        for _ in range(4):
            yield s.append(2, 200)
        yield s.restart()
        yield s.append()
        yield s.kill()
    yield s.append()


def _cuts(s: KafkaSubject) -> Iterator[Step]:
    for _ in range(6):
        yield s.append(2, 250)
    yield s.flush()
    yield s.truncate(8)
    yield s.append()
    yield s.kill()
    yield s.truncate(4)
    yield s.append(2, 250)


KAFKA_WORKLOADS = [
    KafkaWorkload("kafka-appends", _appends),
    KafkaWorkload("kafka-starts", _starts),
    KafkaWorkload("kafka-cuts", _cuts),
]
