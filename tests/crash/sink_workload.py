"""Commits of Spark's sink to a store, as a workload that can be crashed."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from mqlake.spark.sink.commit import SinkEpoch, commit
from mqlake.spark.sink.roll_back import roll_back
from mqlake.spark.sink.staged import StagedFile
from mqlake.store.append.message import Message
from mqlake.store.owned_store import OwnedStore
from mqlake.store.settings import StoreSettings
from tests.crash.clock import ManualClock
from tests.crash.disk import RecordedDisk
from tests.crash.expectation import Acknowledged, Durable, Found, Sent, require
from tests.crash.log_walk import walk
from tests.crash.oracles import check_index, check_queues, check_reads
from tests.crash.store_workload import ASYNC, settings_of
from tests.crash.trace import Note

TOPIC = "orders"
_PLACE = tempfile.TemporaryDirectory(prefix="mqlake-staged-")
Batches = Sequence[Sequence[int]]
"""The messages of each task of a write, by number."""


@cache
def _staged(batches: tuple[tuple[int, ...], ...], size: int) -> tuple[Path, list[StagedFile]]:
    """Stage messages as the tasks of a write do, once: what is staged is the same in each run."""
    from tests.spark.sink.writing import stage_tasks, to_batch

    place = Path(_PLACE.name)
    directory = place / f"{abs(hash((batches, size)))}"
    tasks = [to_batch([_message(number, size) for number in batch]) for batch in batches]
    return directory, stage_tasks(place / "store", directory, tasks, mappedFileSizeCommitLog=4096)


def _message(number: int, size: int) -> Message:
    body = f"{number}:".encode().ljust(size, b"x")
    return Message(TOPIC, body, keys=f"k{number}", queue_id=number % 2, born_timestamp=1)


@dataclass
class SinkWorkload:
    """Epochs of a streaming query, or batch writes (an epoch of None), one after the other."""

    name: str
    epochs: Sequence[Batches]
    is_streaming: bool = True
    size: int = 200
    settings: StoreSettings = field(default_factory=lambda: settings_of(ASYNC))

    def run(self, disk: RecordedDisk, clock: ManualClock) -> None:
        for number, batches in enumerate(self.epochs):
            for message in self._messages(number):
                disk.record(Note(Sent(message)))
            count = self._commit(disk, clock, number)
            require(count == sum(map(len, batches)), f"{count} messages were added")
            for message in self._messages(number):
                disk.record(Note(Acknowledged(message)))
                disk.record(Note(Durable(message)))
            clock.forward(1000)

    def _messages(self, epoch: int) -> list[int]:
        return [number for batch in self.epochs[epoch] for number in batch]

    def _commit(self, disk: RecordedDisk, clock: object, number: int) -> int:
        batches = tuple(tuple(batch) for batch in self.epochs[number])
        directory, parts = _staged(batches, self.size)
        epoch = SinkEpoch("query", number) if self.is_streaming else None
        return commit(disk, self.settings, directory, parts, epoch, clock)

    def examine(self, disk: RecordedDisk) -> Found:
        roll_back(disk, self.settings, disk.clock)
        numbers = self._read(disk)
        disk.abandon()
        if self.is_streaming:
            self._commit_again(RecordedDisk(disk.snapshot(), disk.clock), numbers)
        return Found(frozenset(numbers))

    def _commit_again(self, disk: RecordedDisk, numbers: list[int]) -> None:
        """Spark commits the epoch again that it did not note, and those that come after it."""
        epochs = range(len(self.epochs))
        taken = [epoch for epoch in epochs if {*self._messages(epoch)} <= {*numbers}]
        for epoch in epochs[max(0, len(taken) - 1) :]:
            self._commit(disk, disk.clock, epoch)
        found = self._read(disk)
        expected = [number for epoch in epochs for number in self._messages(epoch)]
        require(found == expected, f"committed again, there are {found}, not {expected}")

    def _read(self, disk: RecordedDisk) -> list[int]:
        """Open the store; return the numbers of its messages, whole epochs only, in their order."""
        store = OwnedStore.open(disk, self.settings, disk.clock)
        log = walk(disk)
        check_queues(store, disk, log)
        check_index(store, disk, log)
        check_reads(store, log)
        store.close()
        numbers = [int(found.record.body.partition(b":")[0]) for found in log.records]
        whole: list[int] = []
        for epoch in range(len(self.epochs)):
            if numbers[len(whole) :]:
                whole += self._messages(epoch)
        require(numbers == whole, f"{numbers} is not made of whole commits")
        return numbers


SINK_WORKLOADS = {
    workload.name: workload
    for workload in (
        SinkWorkload("sink-epochs", [[[1, 2], [3]], [[4, 5]], [[6], [7, 8]]]),
        SinkWorkload("sink-batches", [[[1, 2]], [[3, 4]]], is_streaming=False),
        SinkWorkload("sink-rolls", [[[1, 2, 3]], [[4, 5, 6], [7]]], size=1500),
    )
}
"""The writes of Spark's sink, by name."""
