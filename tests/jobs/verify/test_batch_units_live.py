"""Verify batch consume queues while a broker writes them, in a store that has no others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from mqlake.formats import record
from mqlake.formats.batch_consume_queue import UNIT_SIZE
from mqlake.formats.config.topics import BATCH_QUEUES, QUEUE_TYPE, Topic
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.verify import settled, verify
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.owned_store import OwnedStore
from mqlake.store.snapshot import Snapshot
from tests.crash.clock import ManualClock
from tests.jobs.verify.test_batch_units import counts, edit, write
from tests.jobs.verify.test_verify_live import Interleaved
from tests.store.test_inner_batches import SMALL, batch


class Live:
    """A store whose topics all have batch consume queues, written while another part verifies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        settings = msgspec.structs.replace(SMALL, mapped_file_size_commit_log=1 << 16)
        self.store = OwnedStore.open(LocalOwnedDirectory(path), settings, ManualClock())
        self.store.config.topics.put(Topic("Batches", attributes={QUEUE_TYPE: BATCH_QUEUES}))

    def append(self, count: int) -> None:
        for number in range(count):
            assert self.store.puts.put_batch(batch(1 + number % 3, queue_id=number % 2)).is_ok

    def put(self, count: int) -> None:
        self.append(count)
        self.store.log.unsynced().complete()
        self.store.tick()


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    monkeypatch.setattr(Snapshot, "owner", 4711)  # another process's, as verify sees it
    monkeypatch.setattr(settled, "_LOOK_INTERVAL", 0)
    live = Live(tmp_path)
    live.put(200)
    yield live
    live.store.abandon()


@pytest.mark.parametrize("growth", ["put", "append"])
def test_what_comes_meanwhile_is_no_damage(live: Live, growth: str) -> None:
    happens = {"put": live.put, "append": live.append}[growth]

    report = verify(live.path, Interleaved(lambda what: happens(9)), tasks=5)

    assert (report.ok, report.damage) == (True, [])
    assert report.queue_entries.good == report.records == 200


def test_what_is_appended_and_not_dispatched_is_no_damage(live: Live) -> None:
    live.append(30)

    report = verify(live.path, LocalEngine(1), tasks=3)

    assert (report.ok, report.records) == (True, 230)
    assert report.queue_entries.undispatched == 30


def test_damage_of_what_was_dispatched_is_found_in_a_live_store(live: Live) -> None:
    write(live.path, 2, bytes(UNIT_SIZE), 2)
    edit(live.path, 1, 3, size=record.MIN_SIZE)

    report = verify(live.path, LocalEngine(1), tasks=3)

    assert (report.ok, counts(report)) == (False, (1, 1, 0))
