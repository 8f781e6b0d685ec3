"""How long a person waits for the command on a small store."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests import golden

from benchmarks.bench import Bench, interleave, mqlake, remove, seconds
from benchmarks.results import Bar, Section, Series

STORE = "rmq5-clean"
WANTED_SPARK = 8
WANTED_CHEAP = 0.3

METHOD = """\
Wall-clock time of whole processes, from start to exit, on a store that Apache RocketMQ 5.5.0 wrote
(a few thousand messages, `tests/golden_stores/`). The first round is dropped, because it fills
caches that an installation fills, too."""


def measure(bench: Bench) -> Section:
    """Measure the commands that have a bar, one after the other, in rounds."""
    store = golden.store(STORE)
    message = store.messages()[-1]
    question = ("--topic", message["topic"], "--unique-key", message["uniqKey"])
    output = bench.directory / "derived-startup"
    work: dict[str, tuple[object, ...]] = {
        "mqlake --help": ("--help",),
        "mqlake query, one message": ("query", store.path, *question),
    }
    if "spark" in bench.engines:
        rebuild = ("rebuild", store.path, "--out", output, "--engine", "spark")
        work["mqlake rebuild --engine spark"] = rebuild
    runs = {name: _timed(words, output) for name, words in work.items()}
    answers = interleave(runs, dropped=1, repetitions=bench.repetitions)
    series = [Series(name, "s", seconds(answers[name])) for name in answers]
    bars = [
        Bar(one.name, "<", WANTED_SPARK if "spark" in one.name else WANTED_CHEAP, one.median, "s")
        for one in series
    ]
    return Section("startup", "First result of the command", METHOD, series, bars)


def _timed(words: tuple[object, ...], output: Path) -> Callable[[], dict[str, Any]]:
    command = [mqlake(), *map(str, words)]

    def run() -> dict[str, Any]:
        remove(output)
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return {"seconds": time.perf_counter() - begin}

    return run
