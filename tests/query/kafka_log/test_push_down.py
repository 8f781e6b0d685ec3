"""Conditions that narrow what is read give what all rows, filtered afterwards, give."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mqlake.kafka.log import stretches
from mqlake.kafka.log.log_directory import LogDirectory
from mqlake.kafka.log.stretches import OffsetStretch
from mqlake.query.kafka_log.plan import plan_batch
from mqlake.query.reading.conditions import AnyNumber, AnyText, Between, Condition, Selection
from mqlake.storage.local import LocalDirectory
from tests import golden_kafka
from tests.query.kafka_log.rows import Row, batch_rows, options_of

COLUMNS = "topic,partition,offset,timestamp"
TOPICS = ("plain-none", "ooo-ts", "same-ts", "txn", "compacted", "logappend", "seg-none", "c-mixed")


@cache
def all_rows(level: str) -> list[Row]:
    path = golden_kafka.log_directory()
    return batch_rows(
        path, subscribe=",".join(TOPICS), columns=COLUMNS, isolation_level=level, minPartitions=1
    )


def holds(one: Condition, row: Row) -> bool:
    if isinstance(one, Between):
        return one.low <= row[one.column] <= one.high
    assert isinstance(one, AnyText | AnyNumber)
    return row[one.column] in one.values


def conditions() -> st.SearchStrategy[Condition]:
    rows = all_rows("read_uncommitted")
    some = st.sampled_from(rows)
    offset = some.map(lambda row: row["offset"])
    time = some.map(lambda row: row["timestamp"])
    topics = st.lists(st.sampled_from([*TOPICS, "none"]), max_size=3).map(tuple)
    return st.one_of(
        st.builds(AnyText, st.just("topic"), topics),
        st.builds(AnyNumber, st.just("partition"), st.sampled_from([(0,), (1,), (0, 5), ()])),
        st.builds(Between, st.just("partition"), low=st.integers(-1, 2)),
        st.builds(Between, st.just("offset"), low=offset),
        st.builds(Between, st.just("offset"), high=offset),
        st.builds(AnyNumber, st.just("offset"), st.tuples(offset, offset)),
        st.builds(Between, st.just("timestamp"), low=time),
        st.builds(Between, st.just("timestamp"), high=time),
        st.builds(AnyNumber, st.just("timestamp"), st.tuples(time)),
    )


queries = given(
    selection=st.lists(st.deferred(conditions), min_size=1, max_size=3).map(tuple),
    level=st.sampled_from(["read_committed", "read_uncommitted"]),
    tasks=st.integers(1, 4),
)


@queries
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_pushed_conditions(selection: Selection, level: str, tasks: int) -> None:
    check_pushed_conditions(selection, level, tasks)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@queries
@settings(max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
def test_many_pushed_conditions(selection: Selection, level: str, tasks: int) -> None:
    check_pushed_conditions(selection, level, tasks)


def check_pushed_conditions(selection: Selection, level: str, tasks: int) -> None:
    rows = batch_rows(
        golden_kafka.log_directory(),
        selection,
        subscribe=",".join(TOPICS),
        columns=COLUMNS,
        isolation_level=level,
        minPartitions=tasks,
    )
    # Spark applies its filters again: more rows than wanted are right, others are not.
    assert [row for row in rows if all(holds(one, row) for one in selection)] == [
        row for row in all_rows(level) if all(holds(one, row) for one in selection)
    ]
    about_offsets = [one for one in selection if not isinstance(one, AnyNumber)]
    if len(about_offsets) == len(selection):
        assert all(holds(one, row) for one in selection for row in rows)


def size_of(selection: Selection) -> int:
    options = options_of(golden_kafka.log_directory(), subscribe="seg-none", minPartitions=1)
    plan = plan_batch(options, selection)
    return sum(one.size for task in plan.tasks for one in task.ranges)


def test_indexes_spare_reading() -> None:
    rows = [row for row in all_rows("read_uncommitted") if row["topic"] == "seg-none"]
    late = rows[len(rows) * 9 // 10]
    whole = size_of(())
    assert size_of((Between("offset", low=late["offset"]),)) < whole // 5
    assert size_of((Between("timestamp", low=late["timestamp"]),)) < whole // 5
    assert size_of((Between("offset", high=rows[20]["offset"]),)) < whole // 5
    assert size_of((AnyText("topic", ("other",)),)) == 0
    assert size_of((Between("partition", low=1),)) == 0


@pytest.mark.parametrize("size", [1, 5000, 100_000])
def test_cuts_tile_a_stretch(size: int, tmp_path: Path) -> None:
    """Without indexes, too, or with those of another partition."""
    source = golden_kafka.GoldenPartition("seg-none-0")
    changed = source.copy(tmp_path / "seg-none-0")
    for number, index in enumerate(sorted(changed.glob("*.index"))):
        other = golden_kafka.GoldenPartition("one-record-batches-0").path / f"{0:020d}.index"
        index.write_bytes(b"" if number % 2 else other.read_bytes())
    for directory in (golden_kafka.log_directory(), tmp_path):
        with LogDirectory(LocalDirectory(directory)).partition("seg-none", 0) as partition:
            span = OffsetStretch(3, partition.log_end_offset - 2)
            pieces = list(stretches.cut(partition, span, size))
        assert (pieces[0].start, pieces[-1].end) == (span.start, span.end)
        assert [piece.end for piece in pieces[:-1]] == [piece.start for piece in pieces[1:]]
        assert all(piece.start < piece.end for piece in pieces)
    assert batch_rows(tmp_path, columns=COLUMNS, minPartitions=9) == [
        row for row in all_rows("read_uncommitted") if row["topic"] == "seg-none"
    ]
