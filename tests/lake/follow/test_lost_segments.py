"""Retention removes segments while a batch is written: only what was not read is a dead letter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqlake.jobs.engine import J, R
from mqlake.jobs.local import LocalEngine
from mqlake.lake.files.partition_writer import WrittenFiles
from mqlake.lake.follow import log_writing
from mqlake.lake.follow.damage import damage_of
from mqlake.lake.follow.dead_letters import DeadLetterTable, options_of
from mqlake.lake.follow.log_writing import WriteJob
from mqlake.lake.options import FollowOptions, Format
from mqlake.lake.tables.opening import open_table
from mqlake.query.store.access.stretches import Stretch, common, without
from mqlake.query.store.plan import plan_batch
from mqlake.query.store.position import StorePosition
from tests.lake.follow.test_log_writing import filled, joined, truth, written
from tests.lake.tables.tables import FOLLOWER, options
from tests.query.store.growing import GrowingStore
from tests.query.store.rows import options_of as read_options_of


def segments(store: GrowingStore) -> list[Stretch]:
    """Return the bounds of the segments' files."""
    files = sorted((store.path / "commitlog").iterdir())
    return [(int(file.name), int(file.name) + file.stat().st_size) for file in files]


def remove(store: GrowingStore, segment: Stretch) -> None:
    (store.path / "commitlog" / f"{segment[0]:020d}").unlink()


class InTurn:
    """An engine of two slots that runs one task after another."""

    parallelism = 2

    def run(self, task: Callable[[J], R], jobs: Sequence[J], title: str) -> list[R]:
        return [task(job) for job in jobs]


def test_a_task_loses_a_segment_that_another_one_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tasks share the topics, so one topic's messages of the segment are in the table."""
    store = filled(tmp_path / "store")
    lost, write = segments(store)[1], log_writing._write
    jobs: list[WriteJob] = []

    def losing(job: WriteJob) -> WrittenFiles:
        jobs.append(job)
        if len(jobs) == 2:
            remove(store, lost)
        return write(job)

    monkeypatch.setattr(log_writing, "_write", losing)
    monkeypatch.setattr("tests.lake.follow.test_log_writing.LocalEngine", lambda _: InTurn())
    found = written(store, tmp_path / "table", minPartitions="2", failOnDataLoss="false")
    assert [bool(one.unread) for one in found] == [False, True]
    assert found[1].unread == [lost]
    whole = joined(found[:1])
    assert whole == {topic: truth(store)[topic] for topic in whole}
    for topic, offsets in joined(found[1:]).items():
        left = [at for at in truth(store)[topic] if not lost[0] <= at < lost[1]]
        assert offsets == left


def test_what_was_gone_before_the_batch_was_planned(tmp_path: Path) -> None:
    store = filled(tmp_path / "store")
    gone = segments(store)[1]
    remove(store, gone)
    found = written(store, tmp_path / "table", failOnDataLoss="false")
    assert [one.unread for one in found if one.unread] == [[gone]]


def letters(given: FollowOptions) -> list[dict[str, Any]]:
    columns = ("kind", "physicalOffset", "length")
    batches = open_table(options_of(given)).scan(columns)
    return [row for batch in batches for row in batch.to_pylist()]


def test_a_segment_that_was_read_is_no_dead_letter(tmp_path: Path) -> None:
    store = filled(tmp_path / "store")
    first, second = segments(store)[:2]
    end = StorePosition(segments(store)[-1][0])
    given = msgspec.structs.replace(options(tmp_path / "table", Format.DELTA), store=store.path)
    dead = DeadLetterTable(given, LocalEngine(1), FOLLOWER)
    remove(store, first)
    remove(store, second)
    assert dead.take_damage(0, StorePosition(0), end, []) == 0
    assert not dead.exists
    assert dead.take_damage(1, StorePosition(0), end, [second]) == 1
    expected = {"kind": "deleted", "physicalOffset": second[0], "length": second[1] - second[0]}
    assert letters(given) == [expected]
    assert dead.take_damage(2, StorePosition(0), end) == 1  # not known: more rather than less
    assert len(letters(given)) == 2


def test_a_segment_that_is_removed_while_damage_is_looked_for(tmp_path: Path) -> None:
    store = filled(tmp_path / "store")
    gone = segments(store)[0]
    task, *_ = plan_batch(read_options_of(store.path)).tasks
    remove(store, gone)
    assert list(damage_of(task, ())) == []
    (one,) = damage_of(task, ((gone[0] + 100, gone[0] + 300),))
    assert one[:3] == (gone[0] + 100, 200, "deleted")
    assert [found[2] for found in damage_of(task)] == ["deleted"]


def test_stretches() -> None:
    assert common([(0, 10), (20, 30)], [(5, 25)]) == [(5, 10), (20, 25)]
    assert without([(0, 30)], [(5, 8), (8, 10), (25, 40)]) == [(0, 5), (10, 25)]
    assert without([(0, 30)], []) == [(0, 30)]
    assert without([(0, 30)], [(0, 30)]) == []
