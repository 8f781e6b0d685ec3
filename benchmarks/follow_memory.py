"""Memory that `mqlake follow` takes: by its micro-batches, whatever waits for it in the store."""

from __future__ import annotations

import subprocess

from benchmarks.bench import Bench, mqlake, remove
from benchmarks.memory import INTERVAL, SMALLEST, peak_memory
from benchmarks.results import Bar, Section, Series

SEGMENTS = (1, 4)
BATCH = 50_000
WANTED_GROWTH = 1.25

METHOD = """\
`mqlake follow --to delta --once` with {batch:,} messages of 1 KiB in a micro-batch, in a new
process and into a new table, on stores with {some} and with {more} MiB of unread log. The memory of
each of its processes (the driver, the JVM, the Python workers) is read every {interval:.0f} ms, as
in "Memory". A figure is the maximum of any process of a program; programs that never had
{smallest:.0f} MiB are omitted."""


def measure(bench: Bench) -> Section:
    """Watch it take in a store, and one of four times the size."""
    series: list[Series] = []
    largest: list[float] = []
    for segments in SEGMENTS:
        peaks = _watch(bench, segments)
        waiting = f"{segments * bench.size >> 20} MiB of backlog"
        series += [Series(f"{waiting}: {name}", "B", [peak]) for name, peak in peaks]
        largest.append(max(peak for _, peak in peaks))
    text = "memory of follow's largest process with four times the backlog"
    some, more = (count * bench.size >> 20 for count in SEGMENTS)
    method = METHOD.format(
        batch=BATCH, some=some, more=more, interval=INTERVAL * 1000, smallest=SMALLEST >> 20
    )
    bar = Bar(text, "≤", WANTED_GROWTH, largest[1] / largest[0], "x")
    return Section("follow_memory", "Memory of a running follow", method, series, [bar])


def _watch(bench: Bench, segments: int) -> list[tuple[str, int]]:
    store, out = bench.store(1024, segments=segments), bench.directory / "table"
    command = [
        *(mqlake(), "follow", store.path, "--to", "delta", "--out", out, "--once"),
        *("--max-offsets-per-trigger", BATCH, "--no-progress"),
    ]
    try:
        with subprocess.Popen([*map(str, command)]) as follow:
            peaks = peak_memory(follow.pid, follow.wait)
        if follow.returncode:
            raise RuntimeError(f"mqlake follow ended with {follow.returncode}")
    finally:
        remove(out)
    return sorted(peaks.items())
