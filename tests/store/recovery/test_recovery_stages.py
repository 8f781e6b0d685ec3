"""The stages of a recovery: only the last one writes, and constructors touch no file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from mqlake.formats.checkpoint import STILL_OPEN, Checksummed
from mqlake.formats.record import Fault
from mqlake.storage.local import LocalDirectory
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.blocking import BlockingMessageStore
from mqlake.store.index.owned_index import OwnedIndex
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.log.segments import CommitLog, Segment, open_log
from mqlake.store.queues.owned_queues import OwnedQueues
from mqlake.store.reader import StoreReader
from mqlake.store.recovery import log_walk
from mqlake.store.recovery.checkpoint_file import CheckpointFile, FoundCheckpoint
from mqlake.store.recovery.derive import derive
from mqlake.store.recovery.find import find
from mqlake.store.recovery.plan import RecoveryPlan, settle
from tests.crash.clock import ManualClock
from tests.jobs.model import read_log
from tests.store.live_parts import LiveParts
from tests.store.recovering import (
    FIRST,
    SMALL,
    contents,
    leave_killed,
    messages,
    open_store,
    require_whole,
)


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A store of 300 messages whose checkpoint covers 200, and whose process died."""
    leave_killed(tmp_path)
    return tmp_path


def settled(path: Path) -> RecoveryPlan:
    """Return the plan of a recovery. A `LocalDirectory` has no method that writes."""
    directory = LocalDirectory(path)
    log = open_log(directory)
    found = find(directory, log, SMALL, owns_log=True)
    facts = derive(found, directory, log, SMALL, None, owns_log=True)
    return settle(found, facts, SMALL, owns_log=True)


def test_the_plan_says_where_the_log_is_cut_and_what_is_dispatched(killed: Path) -> None:
    records = list(read_log(killed))
    bad = records[250]
    path = killed / "commitlog" / f"{bad.physical_offset >> 14 << 14:020d}"
    data = bytearray(path.read_bytes())
    data[bad.physical_offset % (1 << 14) + 88] ^= 1
    path.write_bytes(data)
    before = contents(killed)

    plan = settled(killed)

    assert (plan.end, plan.fault) == (bad.physical_offset, Fault.CRC)
    dispatched = [(part.start, part.end) for part in plan.dispatch]
    assert dispatched == [(records[200].physical_offset, bad.physical_offset)]
    assert plan.index.start == (records[200].physical_offset, 0)
    assert plan.dirty_from == records[200].physical_offset
    assert plan.checksummed == Checksummed(0, STILL_OPEN)
    assert (plan.distrusts_queues, plan.removed) == (False, {})
    ends = {(kept.files.topic, kept.files.queue_id): kept.end for kept in plan.queues}
    for record in records[:200]:
        assert ends[record.topic, record.queue_id] > record.queue_offset
    assert sum(ends.values()) == 200
    assert contents(killed) == before
    assert open_store(killed, SMALL).report.log_end == plan.end


def _drop_first(path: Path) -> None:
    (path / FIRST).unlink()


def _drop_queues(path: Path) -> None:
    shutil.rmtree(path / "consumequeue")


def _shorten_last(path: Path) -> None:
    file = max((path / FIRST).parent.iterdir())
    file.write_bytes(b"")


@pytest.mark.parametrize("harm", [_drop_first, _drop_queues, _shorten_last])
def test_queues_that_lack_entries_are_derived_from_the_whole_log(
    harm: Callable[[Path], None], tmp_path: Path
) -> None:
    with BlockingMessageStore.open(tmp_path, SMALL) as store:
        store.put_many(messages(300))
    harm(tmp_path)
    before = contents(tmp_path)

    plan = settled(tmp_path)

    assert plan.distrusts_queues
    assert [(part.start, part.end) for part in plan.dispatch] == [(0, plan.end)]
    assert contents(tmp_path) == before
    assert open_store(tmp_path, SMALL).report.is_rebuilt
    assert require_whole(tmp_path, SMALL) == 300


@pytest.mark.parametrize("size", [None, 5000])
def test_queues_are_derived_from_what_is_left_of_a_log(size: int | None, tmp_path: Path) -> None:
    with BlockingMessageStore.open(tmp_path, SMALL) as store:
        store.put_many(messages(300))
    with BlockingMessageStore.open(tmp_path, SMALL) as store:
        ends = {queue: store.queue("Topic0", queue).max_offset for queue in store.queues("Topic0")}
    damaged = sorted((tmp_path / "commitlog").iterdir())[1]
    if size is None:
        damaged.unlink()
    else:
        os.truncate(damaged, size)
    shutil.rmtree(tmp_path / "consumequeue")

    with BlockingMessageStore.open(tmp_path, SMALL) as store:
        for queue, end in ends.items():
            # A queue offset that was given must not be given again.
            assert store.put(Message("Topic0", b"next", queue_id=queue)).queue_offset == end
            last = store.get("Topic0", queue, end - 1, max_messages=1)
            assert [record.queue_offset for record in last.records] == [end - 1]


class Untouched:
    """A directory of which nothing may be asked."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a constructor asked the directory: {name}")


def test_constructors_touch_no_file() -> None:
    directory = cast("OwnedDirectory", Untouched())
    segments = [Segment("0" * 20, 0, 100)]

    log = OwnedCommitLog(directory, segments, 100)
    assert (log.min_offset, log.limit, log.files.size) == (0, 100, 100)
    StoreReader(directory, CommitLog(directory, segments))
    CheckpointFile(directory, FoundCheckpoint())
    OwnedQueues(directory, 400)
    OwnedIndex(directory, ManualClock(), 11, 50)


@pytest.mark.parametrize("room", [0, 1000])
def test_records_that_a_walk_did_not_keep_are_read_again(
    room: int, killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_walk, "_MOST_KEPT", room)
    # Windows of the smallest size, so that a walk keeps some of them.
    monkeypatch.setattr("mqlake.store.log.steps._WINDOW", 1 << 12)
    monkeypatch.setattr("mqlake.store.log.steps._FIRST_WINDOW", 1 << 12)

    (part,) = settled(killed).dispatch
    assert (part.read_end > part.start) == (room > 0)
    assert part.read_end < part.end

    assert open_store(killed, SMALL).report.records == 100
    assert require_whole(killed, SMALL) == 300


def test_a_checkpoint_that_distrusts_the_index_still_distrusts_the_queues(killed: Path) -> None:
    directory = LiveParts(killed, SMALL).directory
    checkpoint = CheckpointFile.open(directory)
    checkpoint.distrust_queues()
    distrusted = CheckpointFile.open(directory).resume
    assert distrusted is not None
    checkpoint.distrust_index(0, 0)
    found = CheckpointFile.open(directory).resume
    assert found is not None
    assert found.queue_ends == distrusted.queue_ends
    assert found.index_slots != distrusted.index_slots
