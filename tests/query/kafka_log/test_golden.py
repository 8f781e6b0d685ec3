"""The rows of every golden partition are the records that Kafka's consumer saw."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from mqlake.errors import StoreError
from mqlake.kafka.log.log_directory import LogDirectory
from mqlake.query.kafka_log.columns import COLUMNS
from mqlake.query.kafka_log.plan import plan_batch
from mqlake.storage.local import LocalDirectory
from mqlake.storage.remote import arrow_fs
from mqlake.storage.remote.arrow_fs import ArrowDirectory
from mqlake.storage.shown_url import shown_url
from tests import golden_kafka
from tests.golden_kafka import LEGACY, GoldenPartition
from tests.query.kafka_log.rows import Row, as_recorded, batch_rows, options_of, task_rows

MOST_MS = (1 << 63) // 1000


def recorded(name: str, level: str) -> list[Row]:
    golden = GoldenPartition(name)
    rows = golden.records()
    if level == "read_committed":
        offsets = set(golden.truth("read_committed.json")["committedOffsets"])
        rows = [row for row in rows if row["offset"] in offsets]
    for row in rows:
        # What a timestamp of Spark cannot say.
        row["timestamp"] = min(row["timestamp"], MOST_MS)
        del row["leaderEpoch"]
    return rows


@pytest.mark.parametrize("partitions", [1, 7])
@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_rows_are_the_recorded_records(level: str, partitions: int) -> None:
    given = {"includeHeaders": "true", "isolation_level": level, "minPartitions": partitions}
    found: dict[str, list[Row]] = defaultdict(list)
    for row in batch_rows(golden_kafka.log_directory(), **given):
        assert list(row) == list(COLUMNS)
        found[f"{row['topic']}-{row['partition']}"].append(as_recorded(row))

    names = golden_kafka.partitions(consumed=True)
    assert set(found) == {name for name in names if recorded(name, level)}
    for name in names:
        assert found[name] == recorded(name, level), name


def test_a_log_directory_behind_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens it, the driver or a task, knows the settings and keeps secrets out of sight."""
    asked: list[tuple[str, Mapping[str, str]]] = []

    def open_local(url: str, settings: Mapping[str, str]) -> ArrowDirectory:
        asked.append((url, settings))
        files = SubTreeFileSystem(str(golden_kafka.log_directory()), LocalFileSystem())
        return ArrowDirectory(files, "", shown_url(url))

    monkeypatch.setattr(arrow_fs, "open_url", open_local)
    url, settings = "s3://key:secret@bucket/logs", {"fs.s3a.endpoint": "http://127.0.0.1:9000"}
    assert options_of(url).path == "s3://bucket/logs"
    found = batch_rows(url, **settings, minPartitions=3)
    assert found == batch_rows(golden_kafka.log_directory())
    assert len(asked) > 1
    assert all(one == (url, settings) for one in asked)
    with pytest.raises(StoreError, match=r"^s3://bucket/logs: topic 'none' does not exist"):
        batch_rows(url, subscribe="none")


def test_versions_0_and_1(tmp_path: Path) -> None:
    for name in LEGACY:
        (tmp_path / name).symlink_to(golden_kafka.legacy(name))
    rows = batch_rows(tmp_path, includeHeaders="true", minPartitions=5)
    logs = LogDirectory(LocalDirectory(tmp_path))
    expected = []
    for name in logs.partitions():
        with logs.partition(name.topic, name.partition) as partition:
            expected += [
                (name.topic, record.offset, record.timestamp, record.key, record.value)
                for record in partition.records()
            ]
    columns = ("topic", "offset", "timestamp", "key", "value")
    assert [tuple(row[name] for name in columns) for row in rows] == expected
    types = {row["topic"]: row["timestampType"] for row in rows}
    assert (types["v0"], types["v1"], types["v1-append"]) == (-1, 0, 1)


def test_only_the_columns_that_are_asked_for() -> None:
    path = golden_kafka.log_directory()
    rows = batch_rows(path, subscribe="txn", columns="OFFSET, value")
    assert [list(row) for row in rows[:1]] == [["offset", "value"]]
    assert "headers" not in batch_rows(path, subscribe="txn")[0]
    assert list(batch_rows(path, subscribe="txn", columns="headers")[0]) == ["headers"]


@pytest.mark.parametrize("most", [7, 500, 3000])
def test_no_task_has_more_offsets_than_asked_for(most: int) -> None:
    options = options_of(
        golden_kafka.log_directory(), subscribe="plain-none", maxRecordsPerPartition=most
    )
    tasks = plan_batch(options).tasks
    counts = [len(list(task_rows(task, options))) for task in tasks]
    assert max(counts) <= most
    assert sum(counts) == 6000


def test_tasks_are_about_as_many_as_asked_for() -> None:
    for count in (1, 2, 5, 10):
        options = options_of(
            golden_kafka.log_directory(), subscribe="plain-none", minPartitions=count
        )
        tasks = plan_batch(options).tasks
        sizes = [sum(one.size for one in task.ranges) for task in tasks]
        assert count <= len(tasks) <= count + 2
        assert max(sizes) < 2 * sum(sizes) / count
