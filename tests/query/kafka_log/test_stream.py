"""A stream reads each record once: new partitions, retention, limits, restarts, transactions."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mqlake.errors import StoreError
from mqlake.query.kafka_log.position import KafkaLogPosition
from mqlake.query.reading.triggers import share
from tests import golden_kafka
from tests.golden_kafka import GoldenPartition
from tests.query.kafka_log.growing import START, Engine, GrowingLogs
from tests.query.kafka_log.rows import options_of


@pytest.fixture
def logs(tmp_path: Path) -> GrowingLogs:
    return GrowingLogs(tmp_path / "logs")


def engine(logs: GrowingLogs, **options: object) -> Engine:
    return Engine(
        options_of(logs.path, streaming=True, **{"startingOffsets": "earliest"} | options)
    )


def test_each_record_once(logs: GrowingLogs) -> None:
    logs.grow(100, ("a", 0), ("b", 1))
    running = engine(logs)
    assert running.run_all() == [100]
    assert running.position == {"a": {"0": 50}, "b": {"1": 50}}
    for count in (1, 30, 7):
        logs.grow(count, ("b", 1))
        assert running.run_all() == [count]
        running.restart()
    assert running.keys == logs.keys


def test_new_partitions_are_read_from_their_beginning(logs: GrowingLogs) -> None:
    logs.grow(10)
    running = engine(logs, startingOffsets="latest")
    assert running.run_all() == []
    logs.grow(20, ("a", 1), ("new", 0))
    assert running.run_all() == [20]
    assert running.keys == logs.keys[10:]


def test_only_what_is_subscribed_to(logs: GrowingLogs) -> None:
    logs.grow(10)
    running = engine(logs, subscribePattern="a|c.*")
    logs.grow(10, ("b", 0), ("cd", 0))
    assert running.run_all() == [15]
    assert {row["topic"] for row in running.sink[0]} == {"a", "cd"}


def test_a_topic_that_is_subscribed_to_later_is_read_from_its_beginning(logs: GrowingLogs) -> None:
    logs.grow(30, ("a", 0), ("b", 0))
    running = engine(logs, subscribe="a")
    assert running.run_all() == [15]

    running.restart(options_of(logs.path, streaming=True, subscribe="a,b"))
    assert running.run_all() == [15]
    running.restart(options_of(logs.path, streaming=True, subscribe="b"))
    logs.grow(10, ("a", 0), ("b", 0))
    assert running.run_all() == [5]
    running.restart(options_of(logs.path, streaming=True, subscribe="a,b"))
    assert running.run_all() == [5]
    assert running.keys == logs.keys


def test_a_planned_batch_needs_the_subscription_it_was_planned_for(logs: GrowingLogs) -> None:
    logs.grow(10, ("a", 0), ("b", 0))
    running = engine(logs)
    start = running.stream.position()
    end = running.stream.position(start, running.stream.most)
    running.restart(options_of(logs.path, streaming=True, subscribe="a"))

    with pytest.raises(StoreError, match="b-0, to which the query no longer subscribes"):
        running.stream.plan(start, end)


def test_limits(logs: GrowingLogs) -> None:
    logs.grow(90, ("a", 0), ("a", 1), ("b", 0))
    running = engine(logs, maxOffsetsPerTrigger=40)
    assert running.run_all() == [40, 40, 10]
    assert running.keys == logs.keys


def test_limits_are_shared_by_what_there_is() -> None:
    starts = {("a", 0): 0, ("a", 1): 100, ("b", 0): 7}
    ends = {("a", 0): 900, ("a", 1): 200, ("b", 0): 7}
    assert share(starts, ends, 100) == {("a", 0): 90, ("a", 1): 110, ("b", 0): 7}
    assert share(starts, ends, 1000) == ends
    assert sum(share(starts, ends, 1).values()) == sum(starts.values()) + 1


def test_waiting_for_many(logs: GrowingLogs) -> None:
    logs.grow(10)
    running = engine(logs, minOffsetsPerTrigger=50)
    assert running.run_all() == [10]  # the first batch does not wait
    logs.grow(49)
    assert running.run_all() == []
    logs.grow(1)
    assert running.run_all() == [50]


def test_what_was_there_when_the_query_started(logs: GrowingLogs) -> None:
    logs.grow(10)
    running = engine(logs)
    running.stream.stop_at_end()
    logs.grow(20, ("a", 0), ("new", 0))
    assert running.run_all() == [10]
    assert running.keys == logs.keys[:10]


def test_starting_times(logs: GrowingLogs) -> None:
    logs.grow(60, ("a", 0))
    assert engine(logs, startingTimestamp=START + 40_500).run_all() == [19]
    with pytest.raises(StoreError, match="a-0: no record is from"):
        engine(logs, startingTimestamp=START + 60_000).run_all()
    running = engine(
        logs, startingTimestamp=START + 60_000, startingOffsetsByTimestampStrategy="latest"
    )
    assert running.run_all() == []


def test_retention(logs: GrowingLogs) -> None:
    logs.grow(200)
    strict, tolerant = engine(logs), engine(logs, failOnDataLoss=False)
    for running in (strict, tolerant):
        running.stream.position()
        running._offsets = ['{"a": {"0": 3}}']
    first = logs.drop_first_segment()
    with pytest.raises(StoreError, match=f"a-0 begins at offset {first}; records from 3 on"):
        strict.run_all()
    assert tolerant.run_all() == [200 - first]


def test_a_partition_that_has_gone_or_was_cut(logs: GrowingLogs) -> None:
    logs.grow(20, ("a", 0), ("b", 0))
    running = engine(logs)
    running.run_all()
    logs.drop("b-0")
    with pytest.raises(StoreError, match="b-0 no longer exists"):
        running.trigger()
    running.restart(options_of(logs.path, streaming=True, failOnDataLoss=False))
    assert running.trigger() == 0
    shutil.rmtree(logs.path)
    logs.grow(5)
    running.restart(options_of(logs.path, streaming=True))
    with pytest.raises(StoreError, match="a-0 ends at offset 5, but the query is at 10"):
        running.trigger()


def test_a_segment_that_goes_between_plan_and_task(
    logs: GrowingLogs, caplog: pytest.LogCaptureFixture
) -> None:
    logs.grow(200)
    strict, tolerant = engine(logs), engine(logs, failOnDataLoss=False)
    planned = [
        running.stream.plan({"a": {"0": 0}}, {"a": {"0": 200}}) for running in (strict, tolerant)
    ]
    first = logs.drop_first_segment()
    from tests.query.kafka_log.rows import task_rows

    with pytest.raises(StoreError, match=f"the log has {first} to 200"):
        list(task_rows(planned[0][0], strict._options))
    rows = list(task_rows(planned[1][0], tolerant._options))
    assert len(rows) == 200 - first
    assert "skipped damage in 1 places" in caplog.text


def test_transactions() -> None:
    """A committed stream ends before what is undecided."""
    options = {"startingOffsets": "earliest", "isolation_level": "read_committed"}
    for name in ("txn", "txn-open"):
        truth = GoldenPartition(f"{name}-0").truth("read_committed.json")
        running = Engine(
            options_of(golden_kafka.log_directory(), streaming=True, subscribe=name, **options)
        )
        running.run_all()
        found = [row["offset"] for rows in running.sink for row in rows]
        assert found == truth["committedOffsets"]
        assert running.position[name] == {"0": truth["lastStableOffset"]}


def test_a_checkpoint_of_something_else() -> None:
    with pytest.raises(StoreError, match="not one of this source"):
        KafkaLogPosition.read({"physicalOffset": 7})


OLD_ID, NEW_ID = "4KRDEyi7T2mAUeIiUSxdHg", "uZ1lzC1hSLGzcMI2qVP6Ww"


def name_topic(logs: GrowingLogs, partition: str, topic_id: str) -> None:
    """Write what a broker of Kafka 2.8 or later writes beside a partition's segments."""
    (logs.path / partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")


def test_a_topic_that_was_created_anew_is_another_one(logs: GrowingLogs) -> None:
    logs.grow(20, ("a", 0), ("b", 0))
    name_topic(logs, "a-0", OLD_ID)
    running = engine(logs)
    assert running.run_all() == [20]
    assert running.position == {"a": {"0": 10}, "b": {"0": 10}, "#topicIds": {"a": OLD_ID}}
    logs.drop("a-0")
    logs.grow(30, ("a", 0))
    name_topic(logs, "a-0", NEW_ID)
    running.restart()
    with pytest.raises(StoreError, match=f"its id was {OLD_ID} and is {NEW_ID}"):
        running.trigger()
    tolerant = options_of(logs.path, streaming=True, failOnDataLoss=False)
    running.restart(tolerant)
    assert running.run_all() == [30], "from its first record on"
    assert running.position["#topicIds"] == {"a": NEW_ID}


def test_a_planned_batch_is_not_read_from_another_topic(logs: GrowingLogs) -> None:
    logs.grow(20)
    name_topic(logs, "a-0", OLD_ID)
    running = engine(logs)
    assert running.run_all() == [20]
    start, end = running.position, {"a": {"0": 25}, "#topicIds": {"a": OLD_ID}}
    logs.drop("a-0")
    logs.grow(40)
    name_topic(logs, "a-0", NEW_ID)
    with pytest.raises(StoreError, match="deleted and created again"):
        running.rows(start, end)
    running.restart(options_of(logs.path, streaming=True, failOnDataLoss=False))
    assert running.rows(start, end) == []


def test_a_checkpoint_without_ids_goes_on(logs: GrowingLogs) -> None:
    logs.grow(10)
    running = engine(logs)
    assert running.run_all() == [10]
    name_topic(logs, "a-0", OLD_ID)
    running.restart()
    assert running.run_all() == []
    logs.grow(5)
    assert running.run_all() == [5]
    assert running.position == {"a": {"0": 15}, "#topicIds": {"a": OLD_ID}}


def test_an_unreadable_id_is_none(logs: GrowingLogs) -> None:
    logs.grow(10)
    name_topic(logs, "a-0", "?")
    running = engine(logs)
    assert running.run_all() == [10]
    assert running.position == {"a": {"0": 10}}


@pytest.mark.parametrize("ids", [{"a": 1}, [], "x", {"a": None}])
def test_ids_that_are_none_are_refused(ids: object) -> None:
    with pytest.raises(StoreError, match="not one of this source"):
        KafkaLogPosition.read({"a": {"0": 1}, "#topicIds": ids})
