"""Verify a store with all its derived files: every record, queue entry and index entry."""

from __future__ import annotations

from typing import Any

from benchmarks.bench import Bench, Store, interleave, seconds
from benchmarks.results import Bar, Section, Series

WANTED_RATE = 1.5

METHOD = """\
The `verify` job on the log of 1 KiB records with its consume queues and index file: structure and
CRC of every record, each queue entry and index entry against its record, and each record against
its entries. The rate counts the commit log's bytes only. The first round is dropped."""


def measure(bench: Bench) -> Section:
    """Measure both engines on the same store."""
    store = bench.store(1024)
    names = [name for name in bench.engines if name != "java"]
    derived = bench.directory / "derived-verify"
    bench.peer(names[0]).ask("rebuild", store.path, derived)
    store.adopt(derived)
    runs = {name: lambda name=name: _run(bench, store, name) for name in names}
    answers = interleave(runs, dropped=1, repetitions=bench.repetitions)
    store.strip()
    work = {"messages": store.log.records, "bytes": store.log.size}
    title = {"local": "mqlake, one process", "spark": "mqlake on Spark"}
    series = [Series(title[name], "s", seconds(answers[name]), work) for name in names]
    rate = store.log.size / series[0].median / 1e9
    bar = Bar(f"verify, {title[names[0]]}", "≥", WANTED_RATE, rate, "GB/s")
    return Section("verify", "Verify", METHOD, series, [bar])


def _run(bench: Bench, store: Store, name: str) -> dict[str, Any]:
    store.warm()
    answer = bench.peer(name).ask("verify", store.path)
    assert answer["messages"] == store.log.records, f"{name} missed messages: {answer}"
    assert answer["ok"], f"{name} found damage where there is none"
    return answer
