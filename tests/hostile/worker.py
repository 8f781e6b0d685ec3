"""Run cases in a process of their own: python -m tests.hostile.worker LOG TARGET SEED COUNT …

Prints one JSON line at the start of each target and now and then: what was done so far. LOG has
the seed of the case that runs; when the process dies of it, or hangs, the stack follows.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from tests.hostile.cases import Case, require
from tests.hostile.targets import TARGETS

HANG = 60
"""Seconds after which a case hangs. Cases take milliseconds, at most a second or two."""

FIRST = 10
"""The first case of a process may take so many times as long: it compiles the kernels."""

SLACK, FACTOR = 96 << 20, 64
"""A case may take so many bytes of memory, and so many for each byte of its inputs."""

ADDRESS_SPACE = 6 << 30
"""Bytes of address space beyond those at the start: allocating more fails at once."""

MOST_FAILURES = 20
_REPORT_EVERY = 2.0


class Worker:
    """Cases of one target, from a seed on."""

    def __init__(self, name: str, log: TextIO) -> None:
        self._target, self._log = TARGETS[name], log
        self.inputs = self.cases = self.largest = 0
        self.slowest = 0.0
        self.seen: Counter[str] = Counter()
        self.failures: list[dict[str, Any]] = []

    def run(self, seed: int, count: int) -> Iterator[dict[str, Any]]:
        """Run cases until they had `count` inputs; yield a report first, now and then, and last."""
        yield self.report()
        reported = time.monotonic()
        while self.inputs < count and len(self.failures) < MOST_FAILURES:
            self._case(seed + self.cases)
            if time.monotonic() - reported > _REPORT_EVERY:
                reported = time.monotonic()
                yield self.report()
        yield self.report()

    def report(self) -> dict[str, Any]:
        return {
            "target": self._target.name,
            "inputs": self.inputs,
            "cases": self.cases,
            "slowest": self.slowest,
            "largest": self.largest,
            "seen": self.seen,
            "failures": self.failures,
        }

    def _case(self, seed: int) -> None:
        case = Case.of(self._target.name, seed)
        start = time.monotonic()
        first = self.cases == 0  # imports, compiling and warming of caches are in it
        try:
            with self._watched(seed):
                before = _reset_peak()
                self._target.run(case)
                grown = 0 if first else _peak() - before
            self.largest = max(self.largest, grown)
            bound = SLACK + FACTOR * case.size
            require(grown <= bound, f"{grown >> 20} MiB for {case.size} bytes of input")
        except Exception as error:  # noqa: BLE001 (whatever it is, it is what we look for)
            self.failures.append(
                {
                    "target": self._target.name,
                    "seed": seed,
                    "error": f"{type(error).__name__}: {error}"[:2000],
                    "story": case.story[-40:],
                    "where": traceback.format_exc()[-3000:],
                }
            )
        if not first:
            self.slowest = max(self.slowest, time.monotonic() - start)
        self.cases += 1
        self.inputs += case.inputs
        self.seen.update(case.seen)

    @contextmanager
    def _watched(self, seed: int) -> Iterator[None]:
        """End the process, with the stack in the log, when the block takes too long."""
        self._log.seek(0)
        self._log.truncate()
        self._log.write(f"{seed}\n")
        self._log.flush()
        limit = HANG if self.cases else FIRST * HANG
        faulthandler.dump_traceback_later(limit, exit=True, file=self._log)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()


def _reset_peak() -> int:
    """Let the peak of resident memory start anew; return what is resident now, in bytes."""
    with suppress(OSError):  # elsewhere, or not allowed: the peak is that of the whole process
        Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) << 10
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _limit_memory() -> None:
    try:
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + ADDRESS_SPACE, hard))


def main(log: Path, *tasks: tuple[str, int, int]) -> int:
    """Run targets, from a seed on, for so many inputs each; all of them bounds-checked, or none."""
    if any(TARGETS[name].bounds_checked for name, _, _ in tasks):
        os.environ["MQLAKE_BOUNDSCHECK"] = "1"
    warnings.simplefilter("error")
    _limit_memory()
    with log.open("w") as file:
        faulthandler.enable(file)
        for name, seed, count in tasks:
            for report in Worker(name, file).run(seed, count):
                print(json.dumps(report), flush=True)
        faulthandler.disable()
    return 0


if __name__ == "__main__":
    _log, *_words = sys.argv[1:]
    _tasks = zip(_words[::3], map(int, _words[1::3]), map(int, _words[2::3]), strict=True)
    sys.exit(main(Path(_log), *_tasks))
