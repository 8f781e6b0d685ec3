"""Workers side by side, in processes of their own; what they report, added up."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.hostile.targets import TARGETS

ROOT = Path(__file__).parents[2]
STRIDE = 1_000_000_000
"""Seeds that lie between those of two workers of the same target."""


@dataclass
class Tally:
    """What the workers of one target did."""

    inputs: int = 0
    cases: int = 0
    slowest: float = 0.0
    largest: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)

    def add(self, report: dict[str, Any]) -> None:
        """Add the last report of a worker."""
        self.inputs += report["inputs"]
        self.cases += report["cases"]
        self.slowest = max(self.slowest, report["slowest"])
        self.largest = max(self.largest, report["largest"])
        self.seen.update(report["seen"])
        self.failures += report["failures"]


@dataclass(frozen=True)
class Task:
    """A share of one target's inputs."""

    target: str
    seed: int
    count: int


def share_out(count: int, seed: int, workers: int, names: Iterable[str] = TARGETS) -> list[Task]:
    """Divide `count` inputs among the targets by their shares, and each share among the workers."""
    targets = [TARGETS[name] for name in names]
    whole = sum(target.share for target in targets)
    return [
        Task(target.name, seed + worker * STRIDE, max(1, -(-share // workers)))
        for target in targets
        for share in (round(count * target.share / whole),)
        for worker in range(workers)
    ]


def run(
    tasks: list[Task], workers: int, progress: Callable[[int], None] = lambda _: None
) -> dict[str, Tally]:
    """Run each task in a process of its own, `workers` at once.

    `progress` is told how many inputs there were.
    """
    return _run([[task] for task in tasks], workers, progress)


def run_together(tasks: list[Task]) -> dict[str, Tally]:
    """Run the tasks in two processes: one for the bounds-checking kernels, one for all others.

    A process that dies ends its tasks: those that it had not begun have no inputs.
    """
    groups = {
        bounds: [t for t in tasks if TARGETS[t.target].bounds_checked == bounds]
        for bounds in (False, True)
    }
    return _run(list(groups.values()), len(groups), lambda _: None)


def _run(
    groups: list[list[Task]], workers: int, progress: Callable[[int], None]
) -> dict[str, Tally]:
    tallies = {task.target: Tally() for group in groups for task in group}
    done: dict[tuple[str, int], dict[str, Any]] = {}
    lock = threading.Lock()

    def follow(tasks: list[Task]) -> None:
        seed = tasks[0].seed
        for report in _reports(tasks):
            with lock:
                done[report["target"], seed] = report
                progress(sum(each["inputs"] for each in done.values()))

    with ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(follow, group) for group in groups]:
            future.result()
    for (target, _), report in done.items():
        tallies[target].add(report)
    return tallies


def _reports(tasks: list[Task]) -> Iterable[dict[str, Any]]:
    """Run a worker; yield its reports, the last one with its death if it died."""
    last: dict[str, Any] = {
        "target": tasks[0].target,
        "inputs": 0, "cases": 0, "slowest": 0.0, "largest": 0, "seen": {}, "failures": [],
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="hostile-") as place:
        log = Path(place, "log")
        words = [str(word) for task in tasks for word in (task.target, task.seed, task.count)]
        with subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.worker", str(log), *words],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                last = json.loads(line)
                yield last
        if code := process.returncode:
            seed, *stack = [str(tasks[0].seed)]
            if log.exists():
                seed, *stack = log.read_text(errors="replace").splitlines() or [seed]
            failure = {
                "target": last["target"],
                "seed": seed,
                "error": f"the process ended with {_name(code)}",
                "story": stack[:60],
                "where": "",
            }
            yield last | {"failures": [*last["failures"], failure]}


def _name(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}: a hang, or a crash"


def describe(failure: dict[str, Any]) -> str:
    """Return what a person needs to see a failure again."""
    text = "\n".join(
        (
            f"python -m tests.hostile --target {failure['target']} --seed {failure['seed']}",
            failure["error"],
            *(f"    {line}" for line in failure["story"]),
            failure["where"],
        )
    )
    return text.replace(f"{ROOT}/", "").replace(f"{sys.base_prefix}/", "")
