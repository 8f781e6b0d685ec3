"""Memory that a scan of a log much larger than it takes, without the page cache."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench, Store
from benchmarks.results import Bar, Section, Series

WANTED_BYTES = 1 << 30
SEGMENTS = 4
INTERVAL = 0.005
SMALLEST = 8 << 20

METHOD = """\
New processes rebuild a log of {segments} x {size} MiB, then verify it. Every {interval:.0f} ms, the
anonymous and shared resident memory (`RssAnon` + `RssShmem` of `/proc/PID/status`) of each process
and its children is read (Spark: the driver, the JVM and the Python workers). Pages of mapped files,
which the system can drop, do not count. A figure is the maximum of any process of a program;
programs that never had {smallest:.0f} MiB are omitted."""


def measure(bench: Bench) -> Section:
    """Watch each engine verify and rebuild the same log."""
    store = bench.store(1024, segments=SEGMENTS)
    names = [name for name in bench.engines if name != "java"]
    series = [one for name in names for one in _watch(bench, store, name)]
    largest = max(value for one in series for value in one.values)
    text = f"memory of any process on a log of {SEGMENTS * bench.size >> 20} MiB"
    bar = Bar(text, "<", WANTED_BYTES >> 20, largest / (1 << 20), "MiB")
    method = METHOD.format(
        segments=SEGMENTS, size=bench.size >> 20, interval=INTERVAL * 1000, smallest=SMALLEST >> 20
    )
    return Section("memory", "Memory", method, series, [bar])


def _watch(bench: Bench, store: Store, name: str) -> list[Series]:
    peer = bench.start(name)
    output = bench.directory / "derived-memory"
    try:
        rebuilding = peak_memory(peer.pid, lambda: peer.ask("rebuild", store.path, output))
        store.adopt(output)
        verifying = peak_memory(peer.pid, lambda: peer.ask("verify", store.path))
        peaks = {"rebuild": rebuilding, "verify": verifying}
    finally:
        peer.close()
        store.strip()
    return [
        Series(f"{job}, engine {name}: {process}", "B", [peak])
        for job, processes in peaks.items()
        for process, peak in sorted(processes.items())
    ]


def peak_memory(pid: int, work: Callable[[], Any]) -> dict[str, int]:
    """Return the largest memory (bytes) of a process or descendant during `work`, by program."""
    peaks: dict[str, int] = {}
    done = threading.Event()

    def look() -> None:
        for process in _family(pid):
            name, size = _memory(process)
            peaks[name] = max(peaks.get(name, 0), size)

    def watch() -> None:
        while not done.wait(INTERVAL):
            look()
        look()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        done.set()
        watcher.join()
    return {name: size for name, size in peaks.items() if size >= SMALLEST}


def _family(pid: int) -> list[int]:
    family = [pid]
    for process in family:  # grows while it is walked
        for children in Path(f"/proc/{process}/task").glob("*/children"):
            family += _read_numbers(children)
    return family


def _read_numbers(path: Path) -> list[int]:
    try:
        return [int(word) for word in path.read_text().split()]
    except OSError:  # the process has just ended
        return []


def _memory(pid: int) -> tuple[str, int]:
    """Return program and resident memory (bytes) without file pages; 0 where the process is gone.

    The program, because a child that a thread has just forked still has that thread's name.
    """
    process = Path(f"/proc/{pid}")
    try:
        lines = (process / "status").read_text().splitlines()
        program = (process / "exe").readlink().name
    except OSError:
        return "", 0
    values = dict(line.split(":", 1) for line in lines)
    kibibytes = (int(values.get(name, "0").split()[0]) for name in ("RssAnon", "RssShmem"))
    return program, sum(kibibytes) << 10
