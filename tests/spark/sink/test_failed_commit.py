"""A commit that the disk fails: a batch query that is run again after that stores nothing twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlake.errors import MqlakeError, SyncError
from mqlake.spark.sink import commit
from mqlake.spark.sink.journal import Journal, read_journal
from mqlake.spark.sink.roll_back import roll_back
from mqlake.store.owned_store import OwnedStore
from tests.crash.clock import ManualClock
from tests.crash.disk import RecordedDisk
from tests.crash.faulty import Fault, FaultyDisk
from tests.crash.log_walk import walk
from tests.crash.sink_workload import SinkWorkload

BATCH = SinkWorkload("batch", [[[1, 2], [3]]], is_streaming=False)
STREAM = SinkWorkload("stream", [[[1, 2], [3]]])
ALL = [1, 2, 3]


def numbers(disk: RecordedDisk) -> list[int]:
    return [int(found.record.body.partition(b":")[0]) for found in walk(disk).records]


def restarted(disk: FaultyDisk) -> RecordedDisk:
    """Return the disk without faults, as another process finds it."""
    return RecordedDisk(disk.snapshot(), disk.clock)


@pytest.mark.parametrize(
    ("fault", "workload"),
    [
        (fault, workload)
        for fault in Fault
        for workload in ((BATCH,) if fault.for_ever else (BATCH, STREAM))
    ],
)
def test_a_failed_operation(fault: Fault, workload: SinkWorkload) -> None:
    """A commit that returns has stored everything; one that raises leaves nothing, or says so."""
    at = 0
    while True:
        at += 1
        clock = ManualClock()
        disk = FaultyDisk(fault, at, clock)
        try:
            workload._commit(disk, clock, 0)
            expected = ALL
        except MqlakeError as error:
            expected = ALL if "all messages are stored" in str(error) else []
        if not disk.has_failed:
            break
        after = restarted(disk)
        roll_back(after, workload.settings, clock)  # as `BatchWriter.abort` does
        assert numbers(after) == expected, at
        assert read_journal(after).adding is None
        if not expected or workload is STREAM:
            workload._commit(after, clock, 0)
        assert numbers(after) == ALL, at
        assert workload._read(after) == ALL


def test_a_store_that_was_not_closed_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """The last operation that a full disk may refuse comes after the messages are stored."""
    clock = ManualClock()
    trial = FaultyDisk(Fault.FULL, 0, clock)
    BATCH._commit(trial, clock, 0)
    disk = FaultyDisk(Fault.FULL, trial.operations, clock)
    assert BATCH._commit(disk, clock, 0) == 3
    assert "all messages are stored, but the store was not closed cleanly" in caplog.text
    adding = read_journal(disk).adding
    assert adding is not None
    assert adding.is_taken


def test_a_journal_that_may_not_be_durable_counts_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sync of the journal's directory fails after the journal is in place."""
    clock, syncs = ManualClock(), 0
    disk = FaultyDisk(Fault.FULL, 0, clock)
    sync = FaultyDisk.sync_directory

    def fail(one: FaultyDisk, path: str) -> None:
        nonlocal syncs
        syncs += path == ".mqlake-sink"
        if path == ".mqlake-sink" and syncs > 1:
            raise SyncError("no")
        sync(one, path)

    monkeypatch.setattr(FaultyDisk, "sync_directory", fail)
    with pytest.raises(SyncError):
        BATCH._commit(disk, clock, 0)
    adding = read_journal(disk).adding
    assert adding is not None
    assert not adding.is_taken
    after = restarted(disk)
    roll_back(after, BATCH.settings, clock)
    assert numbers(after) == []
    assert read_journal(after) == Journal()


def after_close(monkeypatch: pytest.MonkeyPatch, then: Callable[[], None]) -> None:
    """Call a function once, after the next store was closed."""
    close = OwnedStore.close

    def closed(one: OwnedStore) -> None:
        monkeypatch.setattr(OwnedStore, "close", close)
        close(one)
        then()

    monkeypatch.setattr(OwnedStore, "close", closed)


def killed_commit(monkeypatch: pytest.MonkeyPatch, disk: RecordedDisk, clock: ManualClock) -> None:
    """Append a part of another driver's batch."""

    def die(*_: Any) -> None:
        raise SyncError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(commit, "_name_topics", die)
        with pytest.raises(SyncError, match="killed"):
            SinkWorkload("other", [[[7], [8]]], is_streaming=False)._commit(disk, clock, 0)


def test_a_driver_that_ends_its_commit_leaves_the_one_that_another_has_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = ManualClock()
    disk = RecordedDisk(clock=clock)
    after_close(monkeypatch, lambda: killed_commit(monkeypatch, disk, clock))
    assert BATCH._commit(disk, clock, 0) == 3
    assert numbers(disk) == [*ALL, 7]
    roll_back(disk, BATCH.settings, clock)
    assert numbers(disk) == ALL


def test_a_driver_that_rolls_back_leaves_the_commit_that_another_has_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = ManualClock()
    disk = RecordedDisk(clock=clock)
    killed_commit(monkeypatch, disk, clock)
    clock.forward(1000)
    after_close(monkeypatch, lambda: killed_commit(monkeypatch, disk, clock))
    roll_back(disk, BATCH.settings, clock)
    assert numbers(disk) in ([], [7])
    roll_back(disk, BATCH.settings, clock)
    assert numbers(disk) == []
