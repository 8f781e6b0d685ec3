"""Any query becomes readers of Spark: each call reaches the query once, with Spark's values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from mqlake.query.reading.conditions import AnyText, Selection
from mqlake.query.reading.source import BatchQuery, Stream, Written
from mqlake.spark.reading import push_down
from mqlake.spark.reading.readers import PushingReader, StreamReader, batch_reader
from mqlake.spark.source.schema import spark_schema

SCHEMA = spark_schema(["topic"])


class Numbers(BatchQuery[int]):
    """A query whose tasks are numbers, and whose rows say which task they are of."""

    def __init__(self, tasks: Sequence[int]) -> None:
        self.tasks = tasks
        self.pushed: Selection | None = None

    def plan(self, pushed: Selection) -> Sequence[int]:
        self.pushed = pushed
        return self.tasks

    def read(self, task: int, schema: Any) -> Iterator[Any]:
        assert schema.names == ["topic"]
        yield task


class Counting(Stream[int]):
    """A stream that counts to ten."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self.end = 10
        self.finished: list[Written] = []

    @property
    def most(self) -> int | None:
        return self._most

    @property
    def seen(self) -> Written | None:
        return {"at": self.end}

    def position(self, after: Written | None = None, most: int | None = None) -> Written:
        if after is None:
            return {"at": 0}
        return {"at": min(self.end, after["at"] + (self.end if most is None else most))}

    def stop_at_end(self) -> None:
        self.end = 5

    def plan(self, start: Written, end: Written) -> Sequence[int]:
        return range(start["at"], end["at"])

    def read(self, task: int, schema: Any) -> Iterator[Any]:
        assert schema.names == ["topic"]
        yield task

    def done(self, end: Written) -> None:
        self.finished.append(end)


def test_a_batch_query_without_tasks_has_one_that_reads_nothing() -> None:
    reader = batch_reader(Numbers([]), SCHEMA, "false", "")
    [partition] = reader.partitions()
    assert list(reader.read(partition)) == []


def test_each_task_of_a_batch_query_is_read() -> None:
    query = Numbers([0, 7])
    reader = batch_reader(query, SCHEMA, "false", "")
    partitions = reader.partitions()
    assert query.pushed == ()
    assert [list(reader.read(one)) for one in partitions] == [[0], [7]]


def test_filters_reach_the_plan_and_stay_with_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push_down, "_is_pushing", lambda: True)
    query = Numbers([1])
    reader = batch_reader(query, SCHEMA, "true", "")
    assert isinstance(reader, PushingReader)
    given = [EqualTo(("topic",), "A"), EqualTo(("unknown",), 3)]
    assert reader.pushFilters(given) == given
    reader.partitions()
    assert query.pushed == (AnyText("topic", ("A",)),)


@pytest.mark.parametrize(("most", "ends"), [(None, [10]), (4, [4, 8, 10])])
def test_a_stream_is_read_to_its_end_in_micro_batches(most: int | None, ends: list[int]) -> None:
    stream = Counting(most)
    reader = StreamReader(stream, SCHEMA)
    limit = reader.getDefaultReadLimit()
    assert isinstance(limit, ReadAllAvailable if most is None else ReadMaxRows)
    at, rows = reader.initialOffset(), []
    found: list[int] = []
    while (end := reader.latestOffset(at, limit)) != at:
        partitions = reader.partitions(at, end)
        rows += [row for one in partitions for row in reader.read(one)]
        reader.commit(end)
        found.append(end["at"])
        at = end
    assert found == ends
    assert rows == list(range(10))
    assert stream.finished == [{"at": end} for end in ends]
    assert reader.reportLatestOffset() == {"at": 10}


def test_available_now_ends_where_the_stream_ends_now() -> None:
    reader = StreamReader(Counting(None), SCHEMA)
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset({"at": 0}, ReadAllAvailable()) == {"at": 5}
