"""DuckDB and Polars query the table, and read only what a query needs."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mqlake
from mqlake.query.reading.conditions import AnyText, Between
from mqlake.table import pruning
from tests.query.store.growing import GrowingStore
from tests.query.store.rows import batch_rows
from tests.store.make_store import START

field = pc.field


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> GrowingStore:
    found = GrowingStore(tmp_path_factory.mktemp("dataset") / "store")
    found.grow(300, ("A", "B", "C"))
    return found


def at(milliseconds: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC)


def test_polars_frames_hold_all_rows(grown: GrowingStore) -> None:
    frame = mqlake.open(grown.path, columns=["topic", "keys", "body"]).to_polars()
    rows = batch_rows(grown.path, columns="topic,keys,body,physicalOffset")
    assert frame["topic"].to_list() == [row["topic"] for row in rows]
    assert frame["keys"].to_list() == [row["keys"] for row in rows]
    assert frame["body"].to_list() == [row["body"] for row in rows]


def test_lazy_polars_frames_read_what_they_need(
    grown: GrowingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = read_columns(monkeypatch)
    query = (
        mqlake.open(grown.path)
        .scan_polars()
        .filter((pl.col("topic") == "B") & (pl.col("storeTimestamp") >= at(START + 100)))
        .select("queueOffset")
    )
    wanted = [
        row["queueOffset"]
        for row in batch_rows(grown.path)
        if row["topic"] == "B" and row["storeTimestamp"] >= START + 100
    ]
    assert query.collect()["queueOffset"].to_list() == wanted
    assert {tuple(sorted(names)) for names in seen} == {("queueOffset", "storeTimestamp", "topic")}


def test_duckdb_reads_what_it_needs(grown: GrowingStore, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = read_columns(monkeypatch)
    relation = mqlake.open(grown.path).to_duckdb()
    query = relation.filter("topic = 'B' and queueId in (0, 2)").aggregate("sum(size), count(*)")
    wanted = [
        row["size"]
        for row in batch_rows(grown.path)
        if row["topic"] == "B" and row["queueId"] in (0, 2)
    ]
    assert query.fetchall() == [(sum(wanted), len(wanted))]
    assert query.fetchall() == [(sum(wanted), len(wanted))]
    assert all("body" not in names for names in seen)


def read_columns(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return a list to which the columns of each read are added."""
    from mqlake.table import log_rows

    seen: list[list[str]] = []
    real = log_rows.read_tasks

    def spy(tasks: Any, schema: Any, keep: Any, threads: int) -> Any:
        seen.append(schema.names)
        return real(tasks, schema, keep, threads)

    monkeypatch.setattr(log_rows, "read_tasks", spy)
    return seen


def test_duckdb_counts_and_joins_on_a_connection(grown: GrowingStore) -> None:
    connection = duckdb.connect()
    table = mqlake.open(grown.path, where=[("topic", "!=", "C")])
    relation = table.to_duckdb(connection)
    connection.register("messages", table.dataset())
    counted = connection.sql("select topic, count(*) from messages group by all order by all")
    rows = [row["topic"] for row in batch_rows(grown.path)]
    assert counted.fetchall() == [("A", rows.count("A")), ("B", rows.count("B"))]
    assert relation.count("*").fetchall() == [(len(rows) - rows.count("C"),)]


def test_datasets_count_rows(grown: GrowingStore) -> None:
    dataset = mqlake.open(grown.path, columns=["topic", "queueId"]).dataset()
    assert dataset.count_rows() == 300
    assert dataset.count_rows(field("queueId") == 9) == 0
    table = dataset.to_table({"double": field("queueId") * 2}, field("topic") == "A")
    rows = [row for row in batch_rows(grown.path) if row["topic"] == "A"]
    assert table.to_pylist() == [{"double": 2 * row["queueId"]} for row in rows]


# Which part of the log an expression can be true in

TOPICS = ["A", "B", "C"]


def pushed(expression: Any) -> tuple[Any, ...]:
    return pruning.pushed(expression, pruning.columns_in(expression), TOPICS)


def test_expressions_are_pushed_down() -> None:
    assert pushed(field("topic") == "B") == (AnyText("topic", ("B",)),)
    assert pushed(field("topic").isin(["C", "A", "X"])) == (AnyText("topic", ("A", "C")),)
    assert pushed(field("topic") == "X") == (AnyText("topic", ()),)
    assert pushed(field("queueOffset") == 12) == (Between("queueOffset", 12, 12),)
    both = (field("physicalOffset") > 1 << 40) & (field("physicalOffset") <= 1 << 41)
    assert pushed(both) == (Between("physicalOffset", (1 << 40) + 1, 1 << 41),)
    late = field("storeTimestamp") >= at(START)
    (found,) = pushed(late)
    assert found == Between("storeTimestamp", low=START)
    either = (field("queueId") == 1) | (field("queueId") == 7)
    assert pushed(either) == (Between("queueId", 1, 7),)


def test_what_turns_out_to_be_impossible_leaves_other_values_possible() -> None:
    """Arrow finds that no value of the first range is possible only once it is divided."""
    never = (field("queueOffset") < 100) & (field("queueOffset") > 200)
    (found,) = pushed(never | (field("queueOffset") == 10**15))
    assert found.low <= 10**15 <= found.high
    (found,) = pushed(never | (field("queueOffset") == 50))
    assert found.low <= 50 <= found.high
    late = (field("queueOffset") > 2**62) & (field("queueOffset") < 2**62 - 100)
    (found,) = pushed(late | (field("queueOffset") == 50))
    assert found.low <= 50 <= found.high


def test_expressions_that_narrow_nothing() -> None:
    assert pushed(field("topic").is_valid()) == ()
    assert pushed(pc.starts_with(field("uniqKey"), "7F")) == ()
    assert pushed((field("queueId") == 1) | (field("flag") == 2)) == ()
    assert pruning.columns_in((field("queueId") == 1) | (field("flag") == 2)) == {"queueId", "flag"}


COLUMNS = {"queueId": 3, "queueOffset": 60, "physicalOffset": 60_000}


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2) -> Any:
    if depth and draw(st.booleans()):
        left, right = draw(expressions(depth - 1)), draw(expressions(depth - 1))
        return draw(st.sampled_from([left & right, left | right, ~left]))
    if draw(st.integers(0, 3)) == 0:
        return field("topic").isin(draw(st.lists(st.sampled_from("ABCD"), min_size=1)))
    name = draw(st.sampled_from(sorted(COLUMNS)))
    number = draw(st.integers(-1, COLUMNS[name]))
    kinds = [lambda: number, lambda: number + 0.5, lambda: pa.scalar(number, pa.float32())]
    kinds += [lambda: Decimal(f"{number}.5"), lambda: pa.scalar(number, pa.int32())]
    value = draw(st.sampled_from(kinds))()
    column = field(name)
    choices = [column == value, column < value, column >= value, column != value]
    return draw(st.sampled_from(choices))


@pytest.mark.parametrize("value", [3.5, pa.scalar(3.5, pa.float32()), Decimal("3.5")])
def test_numbers_of_other_types_select_the_same_rows(grown: GrowingStore, value: Any) -> None:
    table = mqlake.open(grown.path, columns=["topic", *COLUMNS])
    for name in COLUMNS:
        for expression in (field(name) > value, field(name) <= value, pc.scalar(5.5) > field(name)):
            wanted = table.to_arrow().filter(expression)
            assert table.dataset().to_table(filter=expression).equals(wanted)


def test_a_filter_that_is_null_selects_no_row(grown: GrowingStore) -> None:
    dataset = mqlake.open(grown.path).dataset()

    assert dataset.to_table(filter=pc.scalar(None)).num_rows == 0


def test_methods_of_datasets(grown: GrowingStore) -> None:
    table = mqlake.open(grown.path, columns=["topic", *COLUMNS])
    whole, dataset = table.to_arrow(), table.dataset()
    first, second = field("topic") == whole["topic"][0], field("queueId") >= 1

    chosen = dataset.filter(first).filter(second)
    assert chosen.to_table().equals(whole.filter(first & second))
    assert chosen.count_rows() == whole.filter(first & second).num_rows
    assert chosen.to_table(filter=field("queueOffset") < 3).equals(
        whole.filter(first & second & (field("queueOffset") < 3))
    )
    order = [("physicalOffset", "descending")]
    assert (
        dataset.filter(second).sort_by(order).to_table().equals(whole.filter(second).sort_by(order))
    )
    joined = dataset.filter(first).join(dataset, "physicalOffset", right_suffix="_r")
    assert joined.count_rows() == whole.filter(first).num_rows


@settings(max_examples=25, deadline=None)
@given(expressions())
def test_what_is_pushed_down_loses_no_row(grown: GrowingStore, expression: Any) -> None:
    table = mqlake.open(grown.path, columns=["topic", *COLUMNS])
    wanted = table.to_arrow().filter(expression)
    assert table.dataset().to_table(filter=expression).equals(wanted)
