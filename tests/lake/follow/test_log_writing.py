"""A stretch of the log is written to files whole, once, however it is shared among tasks."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import parquet

from mqlake.dispatch.scan import SegmentScan, Want
from mqlake.errors import StoreError
from mqlake.jobs.local import LocalEngine
from mqlake.lake.files.partition_writer import FileShape, WrittenFiles
from mqlake.lake.follow.log_positions import begin_of
from mqlake.lake.follow.log_writing import LogWriting
from mqlake.lake.options import Format, StoreQuery
from mqlake.lake.tables.opening import open_table
from mqlake.query.reading.conditions import TopicShare
from mqlake.query.store.place import open_store
from mqlake.query.store.position import StorePosition
from mqlake.query.store.row_filter import RowFilter
from tests.lake.tables.tables import FOLLOWER, options
from tests.query.store.growing import GrowingStore

COLUMNS = ("topic", "body", "queueOffset", "storeTimestamp", "physicalOffset", "size")
BODY_AT = 88
"""Where the body of a record starts."""

TOPICS = tuple(f"Topic{number}" for number in range(9))


def filled(path: Path, topics: tuple[str, ...] = TOPICS, count: int = 400) -> GrowingStore:
    store = GrowingStore(path)
    store.grow(count, topics)
    return store


def stretch(query: StoreQuery) -> tuple[StorePosition, StorePosition]:
    with open_store(str(query.store)) as store:
        return StorePosition.read(begin_of(query)), StorePosition(store.snapshot.end.offset)


def written(store: GrowingStore, out: Path, slots: int = 4, **source: str) -> list[WrittenFiles]:
    table = options(out, Format.DELTA, columns=COLUMNS)
    query = StoreQuery(
        store=store.path, checkpoint=out / "checkpoint", columns=COLUMNS, source=source
    )
    shape = open_table(table).shape(FOLLOWER, 0)
    assert isinstance(shape, FileShape)
    return LogWriting(query, LocalEngine(slots)).write(stretch(query), shape)


def offsets(found: list[WrittenFiles]) -> dict[str, list[list[int]]]:
    """Return the physical offsets in each file, by topic."""
    by_topic: dict[str, list[list[int]]] = {}
    for one in found:
        for file in one.files:
            column = parquet.ParquetFile(file.path).read(["physicalOffset"]).column(0)
            by_topic.setdefault(file.topic, []).append(column.to_pylist())
    return by_topic


def joined(found: list[WrittenFiles]) -> dict[str, list[int]]:
    return {topic: [at for each in files for at in each] for topic, files in offsets(found).items()}


def truth(store: GrowingStore) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for one in store.messages:
        found.setdefault(one.topic, []).append(one.physical_offset)
    return found


@pytest.mark.parametrize(("slots", "tasks"), [(1, 1), (2, 2), (8, 4)])
def test_each_topic_has_one_file(tmp_path: Path, slots: int, tasks: int) -> None:
    store = filled(tmp_path / "store")
    found = written(store, tmp_path / "table", slots, minPartitions="4")
    assert len(found) == tasks
    assert offsets(found) == {topic: [each] for topic, each in truth(store).items()}
    assert sum(one.log_bytes for one in found) == sum(one.size for one in store.messages)


@pytest.mark.parametrize("tasks", [1, 2, 3, 4, 5, 9, 13])
def test_any_number_of_tasks(tmp_path: Path, tasks: int) -> None:
    store = filled(tmp_path / "store")
    assert joined(written(store, tmp_path / "table", minPartitions=str(tasks))) == truth(store)


def test_a_topic_with_most_of_the_log_is_shared_by_parts_of_the_log(tmp_path: Path) -> None:
    store = filled(tmp_path / "store", (*["Large"] * 20, "Small"))
    found = written(store, tmp_path / "table", minPartitions="4")
    assert len(offsets(found)["Large"]) == 4
    assert joined(found) == truth(store)


def test_topics_that_no_sample_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqlake.lake.follow.topic_groups.SAMPLE", 1)
    store = filled(tmp_path / "store")
    assert joined(written(store, tmp_path / "table", minPartitions="3")) == truth(store)


def test_each_topic_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(tmp_path / "store")
    asked: list[str] = []
    holds = TopicShare.holds

    def note(share: TopicShare, topic: str) -> bool:
        asked.append(topic)
        return holds(share, topic)

    monkeypatch.setattr(TopicShare, "holds", note)
    share = TopicShare({topic: number % 2 for number, topic in enumerate(TOPICS)}, 2, 1)
    row_filter = RowFilter((share,))
    with open_store(str(store.path)) as opened:
        segment = opened.log.segments[0]
        file = opened.log.file(segment)
        assert file is not None
        scan = SegmentScan(
            file, segment.base, segment.base, segment.end,
            exact=True, want=Want.EXPORT, window=512,
        )  # fmt: skip
        found = [row_filter.choose(batch).records["physical_offset"].tolist() for batch in scan]
    assert len(found) > 3
    expected = sorted(at for topic in TOPICS[1::2] for at in truth(store)[topic])
    assert [at for each in found for at in each] == [at for at in expected if at < segment.end]
    assert len(asked) == len(scan.table)


def test_damage_fails_or_is_left_out(tmp_path: Path) -> None:
    store = filled(tmp_path / "store")
    hit = store.messages[100]
    files = sorted((store.path / "commitlog").iterdir())
    segment = [file for file in files if int(file.name) <= hit.physical_offset][-1]
    with segment.open("r+b") as file:
        file.seek(hit.physical_offset - int(segment.name) + BODY_AT)
        file.write(b"!")

    with pytest.raises(StoreError, match="set failOnDataLoss to false"):
        written(store, tmp_path / "table", minPartitions="4")
    found = written(store, tmp_path / "left", minPartitions="4", failOnDataLoss="false")
    expected = truth(store)
    expected[hit.topic].remove(hit.physical_offset)
    assert joined(found) == expected


def test_a_stretch_with_nothing_wanted(tmp_path: Path) -> None:
    store = filled(tmp_path / "store", count=20)
    found = written(store, tmp_path / "table", subscribe="Topic0", minPartitions="3")
    assert joined(found) == {"Topic0": truth(store)["Topic0"]}
    query = StoreQuery(store=store.path, checkpoint=tmp_path / "checkpoint", columns=COLUMNS)
    _, end = stretch(query)
    table = open_table(options(tmp_path / "table", Format.DELTA, columns=COLUMNS))
    assert LogWriting(query, LocalEngine(1)).write((end, end), table.shape(FOLLOWER, 1)) == []
