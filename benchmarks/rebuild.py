"""Consume queues and index files from the commit log alone, CRC checked: mqlake beside Java."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from benchmarks.bench import Answers, Bench, Store, interleave, remove, seconds
from benchmarks.derived import INDEX, QUEUES, compare
from benchmarks.memory_state import DERIVED
from benchmarks.results import Bar, Section, Series

NAMES = {"java": "Java RocketMQ", "local": "mqlake, one process", "spark": "mqlake on Spark"}
WANTED_TIMES_JAVA = 10
WANTED_SPARK_SHARE = 0.95

METHOD = """\
The log is one file of {size} MiB. Java: `DefaultMessageStore.load()`, then `start()` until nothing
is left to dispatch, in a directory that contains the commit log only; opening is timed, closing is
not. mqlake: the `rebuild` job into a new directory, from opening the store until the files have
their final names; on the threads of one process, and on a running Spark session. All write the same
three index entries for each message (key, unique key, tag). The first three rounds are dropped; of
the small records, for which all sides are warm by then, only the first. Most of mqlake's time is
spent on memory: the log is copied out of the page cache and read once, and new pages are cleared
before they are written. So the ratio to Java's time is smaller on machines with slow memory, for
example on virtual machines whose hosts take unused pages back."""


def measure(bench: Bench) -> Section:
    """Measure records of 1 KiB, which the bars are about, and small ones besides."""
    size = bench.size >> 20
    series: list[Series] = []
    bars: list[Bar] = []
    remarks: list[str] = []
    for record_size, dropped in ((1024, 3), (256, 1)):
        store = bench.store(record_size)
        answers = _measure(bench, store, dropped=dropped)
        remarks.append(f"Records of {record_size} bytes: {_agree(bench, store, answers)}.")
        work = {"messages": store.log.records, "bytes": store.log.size}
        mine = [
            Series(f"{NAMES[name]}, records of {record_size} bytes", "s", seconds(told), work)
            for name, told in answers.items()
        ]
        series += mine
        if record_size == 1024:
            bars = _bars({name: s.median for name, s in zip(answers, mine, strict=True)})
        for name in answers:
            remove(_output(bench, name))
    method = METHOD.format(size=size)
    return Section("rebuild", "Rebuild", method, series, bars, remarks)


def _measure(bench: Bench, store: Store, *, dropped: int) -> Answers:
    def run_java() -> dict[str, Any]:
        store.strip()
        store.warm()
        settings = json.dumps({"mappedFileSizeCommitLog": bench.size})
        answer = bench.peer("java").ask("open", store.path, settings)
        bench.peer("java").ask("close")
        _keep_derived(store, _output(bench, "java"))
        store.strip()
        return answer

    def run_mqlake(name: str) -> dict[str, Any]:
        output = _output(bench, name)
        remove(output)
        store.warm()
        return bench.peer(name).ask("rebuild", store.path, output)

    runs = {
        name: run_java if name == "java" else lambda name=name: run_mqlake(name)
        for name in bench.engines
    }
    writes = store.log.records * DERIVED
    return interleave(runs, dropped=dropped, repetitions=bench.repetitions, writes=writes)


def _output(bench: Bench, name: str) -> Path:
    return bench.directory / f"derived-{name}"


def _keep_derived(store: Store, output: Path) -> None:
    remove(output)
    output.mkdir()
    for name in (QUEUES, INDEX):
        shutil.move(store.path / name, output / name)


def _agree(bench: Bench, store: Store, answers: Answers) -> str:
    """Check that all sides saw every message and made the same files; return that in words."""
    for name, repetitions in answers.items():
        for answer in repetitions:
            assert answer["messages"] == store.log.records, f"{name} missed messages: {answer}"
    first, *others = (_output(bench, name) for name in answers)
    said = [compare(first, other) for other in others]
    sides = " and ".join(NAMES[name] for name in answers)
    return f"{sides} found {store.log.records:,} messages; {said[0] if said else 'not compared'}"


def _bars(medians: dict[str, float]) -> list[Bar]:
    bars: list[Bar] = []
    local = medians.get("local")
    if local and "java" in medians:
        text = "rebuild rate in one process, 1 KiB records, against Java's"
        bars.append(Bar(text, "≥", WANTED_TIMES_JAVA, medians["java"] / local, "x"))
    if local and "spark" in medians:
        text = "rebuild rate on Spark without start-up, against one process"
        bars.append(Bar(text, "≥", WANTED_SPARK_SHARE, local / medians["spark"], "x"))
    return bars
