"""Retention of a live store: over simulated days, on disks that fill and recover."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from mqlake.errors import DiskError
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.protocol import DiskUsage
from mqlake.store.append.message import Message
from mqlake.store.live_settings import current
from mqlake.store.log.owned_log import open_owned_log
from mqlake.store.retention.retention import Retention
from mqlake.store.services import Services
from mqlake.store.settings import StoreSettings
from tests.crash.clock import ManualClock
from tests.store.live_parts import LiveParts

HOUR = 60 * 60 * 1000
MIDNIGHT = 1_800_057_600_000
SMALL: dict[str, Any] = {
    "mapped_file_size_commit_log": 1000,
    "mapped_file_size_consume_queue": 100,
    "max_hash_slot_num": 10,
    "max_index_num": 5,
}
SETTINGS = StoreSettings(**SMALL)


class Disk(LocalOwnedDirectory):
    """A directory of which a test says how full its disk is, and when files were written."""

    usage_now = DiskUsage(100_000, 50_000)
    fails = False

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.written: dict[str, int] = {}

    def usage(self) -> DiskUsage:
        if self.fails:
            raise DiskError("the disk does not answer")
        return self.usage_now

    def modified(self, path: str) -> int:
        return self.written[path]

    def remove(self, path: str) -> None:
        if self.fails:
            raise DiskError(f"{path}: Input/output error")
        super().remove(path)


class Store(LiveParts):
    """A live store with retention, and services driven by the clock of the test."""

    def __init__(self, path: Path, settings: StoreSettings = SETTINGS) -> None:
        self.time = ManualClock(MIDNIGHT)
        self.disk = Disk(path)
        super().__init__(self.disk, settings, self.time)
        self.settings = settings
        self.retain_anew()

    def retain_anew(self) -> None:
        """Let a new process's retention be at work."""
        self.retention = Retention(
            directory=self.disk,
            log=self.log,
            queues=self.queues,
            index=self.index,
            checkpoint=self.dispatcher,
            settings=current(self.settings),
            clock=self.time,
            zone=UTC,
        )
        self.services = Services(self.time, self.retention.services())

    def fill(self, segments: int) -> None:
        """Append until the log has begun so many more segments."""
        before = len(self.log.segments)
        while len(self.log.segments) < before + segments:
            self.put(Message(topic="T", body=bytes(60), keys="k"))
        self.sync(before - 1)

    def sync(self, first: int) -> None:
        """Sync the log, whose segments from the one of number `first` on were written now."""
        self.log.unsynced().complete()
        for segment in self.log.segments[max(0, first) :]:
            self.disk.written[segment.path] = self.time.milliseconds()

    def wait(self, milliseconds: int, step: int = 100) -> None:
        for _ in range(milliseconds // step):
            self.time.forward(step)
            while (job := self.services.due()) is not None:
                job.run()
                job.done()

    def agree(self) -> None:
        """Check that queue and index point into the log, and the queue only there."""
        for file in self.index.files().files[:-1]:
            assert file.header.end_physical_offset >= self.log.min_offset
        first = self.queues.min_offset("T", 0)
        entry = self.queues.queue("T", 0).entry(first)
        assert entry is not None
        assert entry.physical_offset >= self.log.min_offset
        records = self.records("T")
        assert records[0].physical_offset == self.log.min_offset
        assert [r.queue_offset for r in records] == list(
            range(first, self.queues.max_offset("T", 0))
        )


@pytest.fixture
def live(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_expired_files_go_at_the_configured_hour_on_each_of_four_days(live: Store) -> None:
    for _ in range(4):
        live.fill(3)
        live.wait(24 * HOUR, step=60_000)
        live.agree()
    # Written at midnight, three days old at 00:00, gone at 04:00 of the day after.
    assert live.log.min_offset == 2 * 1000
    live.wait(4 * HOUR - 60_000, step=60_000)
    assert live.log.min_offset == 2 * 1000
    live.wait(HOUR, step=60_000)
    assert live.log.min_offset == 5 * 1000
    live.agree()
    assert live.queues.queue("T", 0).bases[0] > 0, "queue files go with the log"


def test_a_batch_in_each_interval_and_a_pause_between_files(tmp_path: Path) -> None:
    settings = StoreSettings(
        **SMALL,
        delete_file_batch_max=2,
        delete_commit_log_files_interval=1000,
        file_reserved_time=0,
    )
    live = Store(tmp_path, settings)
    live.fill(6)
    live.retention.clean()
    live.wait(10_000)
    assert live.log.min_offset <= 1000
    live.wait(1000)
    assert live.log.min_offset in (1000, 2000)
    live.wait(1000)
    assert live.log.min_offset == 2000
    live.wait(7900)
    assert live.log.min_offset == 2000
    live.wait(2100)
    assert live.log.min_offset == 4000
    live.wait(60_000)
    assert live.log.min_offset == 5000
    live.fill(3)
    live.wait(60_000)
    assert live.log.min_offset == 5000, "what was asked for is over"


def test_a_full_disk_stops_puts_and_comes_back_by_itself(live: Store) -> None:
    """alibaba/rocketmq#331: read-only, once set, was never cleared."""
    live.fill(2)
    live.disk.usage_now = DiskUsage(100, 9)
    live.wait(10_000)
    assert "91 %" in (live.retention.not_writable or "")
    live.disk.usage_now = DiskUsage(100, 10)
    live.wait(10_000)
    assert live.retention.not_writable is None


def test_deleting_does_not_keep_the_disk_from_being_looked_at(tmp_path: Path) -> None:
    """apache/rocketmq#1400: the check for a full disk waited for the deletes."""
    settings = StoreSettings(
        **SMALL,
        delete_commit_log_files_interval=60_000,
        max_commit_log_bytes=1000,
    )
    live = Store(tmp_path, settings)
    live.fill(8)
    live.wait(60_000)
    assert live.log.min_offset == 1000
    live.disk.usage_now = DiskUsage(100, 5)
    live.wait(10_000)
    assert live.retention.not_writable is not None
    assert live.log.min_offset == 1000, "most of the files still wait"


def test_a_queue_never_points_before_the_log(tmp_path: Path) -> None:
    """alibaba/rocketmq#164: queues pointed at what retention had removed."""
    live = Store(tmp_path, StoreSettings(**SMALL, max_commit_log_bytes=1))
    live.fill(5)
    live.wait(10_000)
    while live.retention.warnings == [] or len(live.log.segments) > 1:
        live.agree()
        live.wait(100)
    live.agree()
    assert len(live.log.segments) == 1


def test_queues_that_a_crash_left_behind_are_trimmed_at_the_first_look(live: Store) -> None:
    live.fill(5)
    live.log.remove_first()
    live.log.remove_first()
    live.retain_anew()
    live.wait(10_000)
    live.agree()


def test_a_removed_file_is_still_read_by_who_reads_it(live: Store) -> None:
    live.fill(3)
    view = live.log.read(0, 100)
    before = bytes(view)
    live.retention.clean()
    live.time.forward(100 * HOUR)
    live.wait(11_000)
    assert live.log.min_offset == 2000
    assert bytes(view) == before


def test_what_is_not_on_the_disk_or_not_dispatched_stays(live: Store) -> None:
    live.fill(2)
    for _ in range(30):
        live.appender.put(Message(topic="T", body=bytes(60), keys="k"))
    for segment in live.log.segments:
        live.disk.written[segment.path] = live.time.milliseconds()
    live.time.forward(100 * HOUR)
    live.retention.clean()
    live.wait(11_000)
    assert live.log.min_offset == 1000
    live.tick()
    live.sync(0)
    live.time.forward(100 * HOUR)
    live.retention.clean()
    live.wait(11_000)
    assert live.log.min_offset == live.log.segments[-1].base > 1000


def test_a_disk_that_fails_warns_and_is_tried_again(live: Store) -> None:
    live.fill(3)
    live.time.forward(100 * HOUR)
    live.disk.fails = True
    live.retention.clean()
    live.wait(10_000)
    assert live.retention.warnings == ["the disk does not answer"]
    live.disk.fails = False
    live.retention.check()
    live.disk.fails = True
    live.retention.remove_next()
    assert "Input/output error" in live.retention.warnings[-1]
    assert live.log.min_offset == 0
    live.disk.fails = False
    live.retention.clean()
    live.wait(12_000)
    assert live.log.min_offset == 2000
    assert live.retention.warnings == []


def test_a_requested_cleanup_is_repeated_after_the_disk_refused_it(live: Store) -> None:
    live.fill(3)
    live.time.forward(112 * HOUR)  # Not an hour of `deleteWhen`.
    live.retention.clean()
    live.retention.check()
    live.disk.fails = True
    live.retention.remove_next()
    assert live.log.min_offset == 0
    live.disk.fails = False
    live.wait(12_000)
    assert live.log.min_offset == 2000
    live.fill(3)
    live.wait(12_000)
    assert live.log.min_offset == 2000  # It was asked for once.


def test_nothing_is_trimmed_before_the_file_of_the_log_is_gone_for_good(live: Store) -> None:
    live.fill(3)
    live.time.forward(100 * HOUR)
    live.retention.clean()
    live.retention.check()
    queue = live.queues.queue("T", 0)
    before = list(queue.bases)
    job = live.retention.remove_next()
    assert job is not None
    live.retention.check()
    segments = list(live.log.segments)
    assert live.retention.remove_next() is not None  # the same one, in case it could not be run
    assert segments == live.log.segments
    assert (live.log.min_offset, queue.bases) == (1000, before)
    job.run()
    job.done()
    assert queue.bases[0] > before[0]
    live.agree()


def test_the_log_opens_again_after_retention(live: Store) -> None:
    live.fill(4)
    live.time.forward(100 * HOUR)
    live.retention.clean()
    live.wait(11_000)
    again = open_owned_log(live.disk, SETTINGS.mapped_file_size_commit_log)
    assert again.min_offset == live.log.min_offset == 3000
