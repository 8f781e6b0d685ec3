"""Commits of Spark's sink to a store, without a JVM: epochs of a query, and batch writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mqlake.spark.sink.roll_back import roll_back
from tests.comparison.disk_world import FAILURES, DiskWorld
from tests.comparison.run import Step, View, World
from tests.crash.disk import RecordedDisk
from tests.crash.log_walk import walk
from tests.crash.sink_workload import SINK_WORKLOADS, SinkWorkload


class SinkSubject:
    """A store, and a driver that commits to it; each commit is a process of its own."""

    def __init__(self, world: DiskWorld, sink: SinkWorkload) -> None:
        self.world, self._sink = world, sink

    def steps(self) -> Iterator[Step]:
        for number in range(len(self._sink.epochs)):
            commit = lambda number=number: self._commit(number)  # noqa: E731
            yield Step(f"commit {number}", commit, is_atomic=True)

    def _commit(self, number: int) -> None:
        self.world.disk.abandon()
        self._sink._commit(self.world.disk, self.world.clock, number)

    def look(self) -> View:
        """Return what a reader finds once an interrupted commit is undone."""
        return self._look_at(self.world.left())

    left = look

    def _look_at(self, disk: RecordedDisk) -> View:
        roll_back(disk, self._sink.settings, self.world.clock)
        found = [record.record.body.partition(b":")[0] for record in walk(disk).records]
        return {"rows": tuple(enumerate(found))}

    def revive(self) -> None:
        """Do nothing: the next commit is another process."""

    def close(self) -> None:
        """Do nothing: no process runs between commits."""


@dataclass
class SinkCommits:
    """The commits of one of the crash simulator's workloads."""

    sink: SinkWorkload
    failures: Sequence[str] = FAILURES

    @property
    def name(self) -> str:
        return self.sink.name

    def begin(self, failure: str, at: int) -> tuple[World, SinkSubject]:
        world = DiskWorld(failure, at)
        return world, SinkSubject(world, self.sink)


SINKS = [SinkCommits(sink) for sink in SINK_WORKLOADS.values()]
