"""`mqlake.open`: three columns of a log as a Polars frame and through DuckDB, without Spark."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import mqlake
from benchmarks.bench import COMMIT_LOG, Bench, interleave, remove, seconds
from benchmarks.results import Bar, Section, Series
from mqlake.jobs.local import LocalEngine, cores
from mqlake.jobs.rebuild import rebuild
from mqlake.table import LogTable

RECORD_SIZE = 1 << 10
COLUMNS = ("topic", "queueOffset", "storeTimestamp")
WANTED = 2
BARS = ("to_polars()", "to_duckdb()")
ALONE = ", log alone"

METHOD = """\
The log has records of {size} bytes, is in the page cache, and has its queue and index files, as a
broker leaves them. "Log alone" has none: planning walks the log to find where it may be divided.
Columns: {columns}. Polars: a frame of all rows.
DuckDB: the number of rows, the greatest offset and the latest store time.
Stream: `pyarrow.RecordBatch`es, one after another. The first two rounds are dropped."""


def measure(bench: Bench) -> Section:
    """Measure whole queries, planning included."""
    store = bench.store(RECORD_SIZE)
    store.strip()
    whole = bench.directory / "arrow-table"
    _with_queues(store.path, whole)
    tables = {
        name: mqlake.open(path, columns=COLUMNS)
        for name, path in (("", whole), (ALONE, store.path))
    }
    queries: dict[str, Callable[[LogTable], int]] = {
        "stream": lambda table: sum(batch.num_rows for batch in table),
        "to_polars()": lambda table: table.to_polars().height,
        "to_duckdb()": _aggregate,
    }
    runs = {
        name + suffix: partial(_run, query, table, store.log.records)
        for suffix, table in tables.items()
        for name, query in queries.items()
    }
    answers = interleave(runs, dropped=2, repetitions=bench.repetitions)
    remove(whole)
    size = store.log.records * RECORD_SIZE
    work = {"messages": store.log.records, "bytes": size}
    series = [Series(name, "s", seconds(told), work) for name, told in answers.items()]
    bars = [
        Bar(f"log read by `{one.name}`", "≥", WANTED, size / one.median / 1e9, "GB/s")
        for one in series
        if one.name in BARS
    ]
    method = METHOD.format(size=RECORD_SIZE, columns=", ".join(f"`{name}`" for name in COLUMNS))
    return Section("arrow_table", "Reading without Spark", method, series, bars)


def _with_queues(store: Path, whole: Path) -> None:
    """Create a store that shares the files of a log, and has its queue and index files."""
    (whole / COMMIT_LOG).mkdir(parents=True)
    for segment in (store / COMMIT_LOG).iterdir():
        (whole / COMMIT_LOG / segment.name).hardlink_to(segment)
    rebuild(whole, LocalEngine(cores()))


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
