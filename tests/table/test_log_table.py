"""A store as an Arrow table has the rows of the Spark source, and those that filters choose."""

from __future__ import annotations

import datetime as dt
import operator
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mqlake
from mqlake.errors import FormatError, StoreError
from mqlake.query.store.columns import COLUMNS
from mqlake.table import LogTable
from tests.golden import NAMES, store
from tests.query.store.growing import GrowingStore
from tests.query.store.rows import as_recorded, batch_rows, in_order
from tests.query.store.truth import comparable, expected_rows
from tests.store.make_store import START


def rows_of(table: LogTable) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for batch in table:
        batch.validate(full=True)
        assert batch.schema.equals(table.schema)
        found += [as_recorded(row) for row in batch.to_pylist(maps_as_pydicts="strict")]
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_are_the_recorded_messages_in_log_order(name: str, threads: int) -> None:
    golden = store(name)

    rows = rows_of(mqlake.open(golden.path, threads=threads, minPartitions=threads * 3))

    assert [comparable(row) for row in rows] == expected_rows(golden)
    assert all(tuple(row) == COLUMNS for row in rows)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> GrowingStore:
    found = GrowingStore(tmp_path_factory.mktemp("table") / "store")
    found.grow(300)
    return found


OPTIONS: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"subscribe": ["A"]}, {"subscribe": "A"}),
    ({"subscribe": "A,B", "columns": ["keys", "physicalOffset"]},
     {"subscribe": "A,B", "columns": "keys,physicalOffset"}),
    ({"keys": ["key-3", "key-70"]}, {"keys": "key-3 key-70"}),
    ({"assign": {"A": [0, 2]}}, {"assign": '{"A": [0, 2]}'}),
    ({"startingTimestamp": dt.datetime.fromtimestamp(START / 1000 + 0.1, dt.UTC)},
     {"startingTimestamp": str(START + 100)}),
    ({"endingTimestamp": START + 50, "includeBody": False},
     {"endingTimestamp": str(START + 50), "includeBody": "false"}),
]  # fmt: skip


@pytest.mark.parametrize(("given_options", "texts"), OPTIONS)
def test_options_are_those_of_the_spark_source(
    grown: GrowingStore, given_options: dict[str, Any], texts: dict[str, str]
) -> None:
    rows = rows_of(mqlake.open(grown.path, **given_options))
    assert rows == batch_rows(grown.path, **texts)
    assert 0 < len(rows) < 300 or "columns" in texts


VALUES: dict[str, Any] = {
    "topic": st.sampled_from(["A", "B", "C", ""]),
    "queueId": st.integers(-1, 4),
    "queueOffset": st.integers(0, 120),
    "physicalOffset": st.integers(0, 60_000),
    "storeTimestamp": st.integers(START - 5, START + 310),
    "reconsumeTimes": st.integers(0, 1),
    "uniqKey": st.sampled_from(["key-1", "none"]),
    "brokerName": st.just("b"),
}
COMPARISONS = {
    "=": operator.eq, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@st.composite
def filters(draw: st.DrawFn) -> tuple[str, str, Any]:
    column = draw(st.sampled_from(sorted(VALUES)))
    if draw(st.booleans()):
        return column, draw(st.sampled_from(sorted(COMPARISONS))), draw(VALUES[column])
    values = draw(st.lists(VALUES[column], max_size=3))
    return column, draw(st.sampled_from(["in", "not in"])), values


def holds(row: dict[str, Any], column: str, comparison: str, value: Any) -> bool:
    found = row[column]
    if found is None:
        return False
    if comparison == "in":
        return found in value
    if comparison == "not in":
        return found not in value
    return COMPARISONS[comparison](found, value)


@settings(max_examples=40, deadline=None)
@given(st.lists(filters(), min_size=1, max_size=3), st.booleans())
def test_filters_choose_exactly(grown: GrowingStore, where: list[Any], with_columns: bool) -> None:
    everything = batch_rows(grown.path)
    columns = ["physicalOffset"] if with_columns else None
    wanted = [row for row in everything if all(holds(row, *one) for one in where)]

    rows = rows_of(mqlake.open(grown.path, where=where, columns=columns))

    assert rows == (
        [{"physicalOffset": row["physicalOffset"]} for row in wanted] if columns else wanted
    )


def test_the_last_time_of_another_zone_is_no_limit(grown: GrowingStore) -> None:
    """It is in the year 10000 in UTC."""
    zone = dt.timezone(dt.timedelta(hours=-5))
    last = dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=zone)
    for where in ([("storeTimestamp", "<=", last)], [("storeTimestamp", "!=", last)]):
        assert len(rows_of(mqlake.open(grown.path, where=where))) == len(grown.messages)


def test_filters_narrow_what_is_read(grown: GrowingStore) -> None:
    last = grown.messages[-1]
    table = mqlake.open(grown.path, where=[("physicalOffset", "in", [last.physical_offset])])
    assert f" {last.size} bytes of " in table.explain()
    assert [row["physicalOffset"] for row in rows_of(table)] == [last.physical_offset]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"columns": ["bod"]}, "no column 'bod'; the nearest is body"),
        ({"subscribed": "A"}, "no option 'subscribed'; the nearest is subscribe"),
        ({"subscribe": ["A,B"]}, "'A,B' is not a string without ','"),
        ({"tags": ["a", 3]}, "3 is not a string without"),
        ({"keys": object()}, "object is not a string, number or list"),
        ({"startingTimestamp": dt.datetime(2024, 1, 1)}, "has no time zone"),  # noqa: DTZ001
        ({"threads": -1}, "threads=-1: give at least 1"),
        ({"where": [("topic", "~", "A")]}, "operator '~' does not exist"),
        ({"where": [("topics", "=", "A")]}, "the nearest is topic"),
        ({"where": [("queueId", "=", "one")]}, "'one' is not a value of type int32"),
        ({"where": [("queueId", "=", 1 << 40)]}, "is not a value of type int32"),
        ({"where": [("queueId", "in", 3)]}, "in needs a list"),
        ({"where": [("topic", "in", "A")]}, "in needs a list"),
        ({"where": [("tags", "=", None)]}, "no value equals null"),
        ({"where": [("storeTimestamp", ">", "2024")]}, "'2024' is not a value of type timestamp"),
        ({"where": [("storeTimestamp", ">", dt.datetime(2024, 1, 1))]}, "no time zone"),  # noqa: DTZ001
        ({"where": [("storeTimestamp", "<", 10**18)]}, "give milliseconds since 1970"),
    ],
)
def test_what_is_wrong_is_one_clear_error(
    grown: GrowingStore, asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(FormatError, match=message.replace("(", r"\(")):
        mqlake.open(grown.path, **asked)


def test_a_list_of_columns_is_one_line(grown: GrowingStore) -> None:
    names: Any = ["topic", "body"]
    with pytest.raises(FormatError, match=r"as select\('topic', 'body'\), not \['topic', 'body'\]"):
        mqlake.open(grown.path).select(names)


def test_a_store_or_a_topic_that_does_not_exist(grown: GrowingStore, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no commitlog/ in it"):
        mqlake.open(tmp_path).to_arrow()
    with pytest.raises(StoreError, match="Missing"):
        mqlake.open(grown.path, subscribe="Missing").to_arrow()


def test_damage_is_an_error_unless_it_is_tolerated(tmp_path: Path) -> None:
    growing = GrowingStore(tmp_path / "store")
    growing.grow(100)
    damaged = growing.messages[40]
    segment = max(
        file
        for file in (growing.path / "commitlog").iterdir()
        if int(file.name) <= damaged.physical_offset
    )
    with segment.open("r+b") as file:
        file.seek(damaged.physical_offset - int(segment.name) + 88)
        file.write(b"\xff\xff")

    with pytest.raises(StoreError, match="set failOnDataLoss to false"):
        mqlake.open(growing.path).to_arrow()
    offsets = mqlake.open(growing.path, failOnDataLoss=False).to_arrow()["physicalOffset"]
    wanted = [message.physical_offset for message in growing.messages if message != damaged]
    assert offsets.to_pylist() == wanted


def test_damage_met_by_other_libraries_says_the_same(tmp_path: Path) -> None:
    growing = GrowingStore(tmp_path / "store")
    growing.grow(20)
    (segment,) = (growing.path / "commitlog").iterdir()
    with segment.open("r+b") as file:
        file.seek(growing.messages[4].physical_offset + 4)
        file.write(b"\xff")
    table = mqlake.open(growing.path, columns=["topic"])
    for use in (table.to_polars, lambda: table.scan_polars().collect(), table.to_duckdb().fetchall):
        with pytest.raises(Exception, match=f"{growing.path}/commitlog/0+: .* failOnDataLoss"):
            use()


def test_each_use_reads_up_to_the_present_end(tmp_path: Path) -> None:
    growing = GrowingStore(tmp_path / "store")
    growing.grow(10)
    table = mqlake.open(growing.path, columns=["keys"])
    assert table.to_arrow().num_rows == 10
    growing.grow(5)
    assert table.to_arrow().num_rows == 15


def test_arrow_takes_the_table_itself(grown: GrowingStore) -> None:
    table = mqlake.open(grown.path).select("queueId", "topic")
    assert table.columns == ("queueId", "topic")
    found = pa.table(table)
    assert found.schema.equals(table.schema)
    assert found.to_pylist() == [
        {"queueId": row["queueId"], "topic": row["topic"]} for row in batch_rows(grown.path)
    ]


def test_no_more_is_read_ahead_than_two_tasks_a_thread(
    grown: GrowingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mqlake.table import batches

    started: list[Any] = []
    real = batches.read

    def spy(task: Any, schema: Any) -> Any:
        started.append(task)
        return real(task, schema)

    monkeypatch.setattr(batches, "read", spy)
    reader = mqlake.open(grown.path, maxRecordsPerPartition=5, threads=2).reader()
    for number in range(1, 20):
        reader.read_next_batch()
        assert len(started) <= number + 3
    reader.close()


def test_a_reader_that_is_dropped_leaves_no_thread(grown: GrowingStore) -> None:
    before = set(threading.enumerate())  # readers of other tests may await garbage collection
    reader = mqlake.open(grown.path, minPartitions=20, threads=2).reader()
    assert reader.read_next_batch().num_rows
    reader.close()
    del reader
    left = set(threading.enumerate()) - before
    assert not [one for one in left if one.name.startswith("mqlake-table")]


def test_rows_of_all_golden_stores_are_in_log_order() -> None:
    for name in NAMES:
        rows = rows_of(mqlake.open(store(name).path, columns=["physicalOffset"], minPartitions=9))
        assert rows == in_order(rows)
