"""The rows of every golden store are the messages that RocketMQ itself reads."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mqlake.query.store.columns import COLUMNS
from tests.golden import NAMES, store
from tests.query.store.rows import batch_rows, in_order
from tests.query.store.truth import comparable, expected_rows


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("partitions", [1, 7])
def test_rows_are_the_recorded_messages(name: str, partitions: int) -> None:
    golden = store(name)

    rows = batch_rows(golden.path, minPartitions=partitions)

    assert expected_rows(golden) == [comparable(row) for row in rows]
    assert set(rows[0]) == set(COLUMNS)
    assert all(list(row) == list(COLUMNS) for row in rows)


def test_only_the_columns_that_are_asked_for(tmp_path: Path) -> None:
    golden = store("rmq5-clean")
    rows = batch_rows(golden.path, columns="uniqKey, PHYSICALOFFSET, brokerName", brokerName="b-0")
    assert rows == [
        {
            "uniqKey": row["uniqKey"],
            "physicalOffset": row["physicalOffset"],
            "brokerName": "b-0",
        }
        for row in expected_rows(golden)
    ]
    assert "body" not in batch_rows(golden.path, includeBody=False)[0]


@pytest.mark.parametrize("most", [1, 100, 3930, 3931, 10_000])
def test_no_partition_has_more_records_than_asked_for(most: int) -> None:
    from mqlake.query.store.plan import plan_batch
    from tests.query.store.rows import options_of, task_rows

    options = options_of(
        store("rmq5-clean").path, maxRecordsPerPartition=most, columns="physicalOffset"
    )
    tasks = plan_batch(options).tasks[: 2000 if most > 1 else 40]
    counts = [len(list(task_rows(task, options))) for task in tasks]
    assert max(counts) <= most
    if most > 1:
        assert sum(counts) == 3931
        assert len(counts) <= -(-3931 // most) + 1


def test_partitions_are_about_as_many_as_asked_for() -> None:
    from mqlake.query.store.plan import plan_batch
    from tests.query.store.rows import options_of

    for count in (1, 2, 5, 20):
        options = options_of(store("rmq5-clean").path, minPartitions=count)
        tasks = plan_batch(options).tasks
        sizes = [sum(piece.end - piece.start for piece in task.pieces) for task in tasks]
        assert abs(len(tasks) - count) <= 1
        assert max(sizes) < 1.6 * sum(sizes) / count


def test_logs_without_queue_files_are_cut_by_a_walk(tmp_path: Path) -> None:

    golden = store("rmq5-clean")
    path = golden.copy(tmp_path / "store")
    shutil.rmtree(path / "consumequeue")
    rows = batch_rows(path, minPartitions=9)
    assert expected_rows(golden) == [comparable(row) for row in in_order(rows)]
