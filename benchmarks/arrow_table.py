"""`mqlake.open`: three columns of a log as a Polars frame and through DuckDB, without Spark."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import mqlake
from benchmarks.bench import Bench, interleave, seconds
from benchmarks.results import Bar, Section, Series
from mqlake.table import LogTable

RECORD_SIZE = 1 << 10
COLUMNS = ("topic", "queueOffset", "storeTimestamp")
WANTED = 2

METHOD = """\
A log of records of {size} bytes in the page cache, without queue and index files.
Columns: {columns}. Polars: a frame of all rows.
DuckDB: the number of rows, the greatest offset and the latest store time.
Stream: `pyarrow.RecordBatch`es, one after another. The first two rounds are dropped."""


def measure(bench: Bench) -> Section:
    """Measure whole queries, planning included."""
    store = bench.store(RECORD_SIZE)
    table = mqlake.open(store.path, columns=COLUMNS)
    queries: dict[str, Callable[[LogTable], int]] = {
        "stream": lambda table: sum(batch.num_rows for batch in table),
        "to_polars()": lambda table: table.to_polars().height,
        "to_duckdb()": _aggregate,
    }
    runs = {name: partial(_run, query, table, store.log.records) for name, query in queries.items()}
    answers = interleave(runs, dropped=2, repetitions=bench.repetitions)
    size = store.log.records * RECORD_SIZE
    work = {"messages": store.log.records, "bytes": size}
    series = [Series(name, "s", seconds(told), work) for name, told in answers.items()]
    bars = [
        Bar(f"log read by `{one.name}`", "≥", WANTED, size / one.median / 1e9, "GB/s")
        for one in series[1:]
    ]
    method = METHOD.format(size=RECORD_SIZE, columns=", ".join(f"`{name}`" for name in COLUMNS))
    return Section("arrow_table", "Reading without Spark", method, series, bars)


def _aggregate(table: LogTable) -> int:
    relation = table.to_duckdb().aggregate("count(*), max(queueOffset), epoch(max(storeTimestamp))")
    return relation.fetchall()[0][0]


def _run(query: Callable[[LogTable], int], table: LogTable, records: int) -> dict[str, Any]:
    begin = time.perf_counter()
    count = query(table)
    taken = time.perf_counter() - begin
    if count != records:
        raise AssertionError(f"{count} rows of {records}")
    return {"seconds": taken}
