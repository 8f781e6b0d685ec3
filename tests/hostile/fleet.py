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
    """Run the tasks, `workers` at once; `progress` is told how many inputs there were."""
    tallies = {task.target: Tally() for task in tasks}
    done: dict[Task, int] = {}
    lock = threading.Lock()

    def follow(task: Task) -> None:
        for report in _reports(task):
            with lock:
                done[task] = report["inputs"]
                progress(sum(done.values()))
        with lock:
            tallies[task.target].add(report)

    with ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(follow, task) for task in tasks]:
            future.result()
    return tallies


def _reports(task: Task) -> Iterable[dict[str, Any]]:
    """Run a worker; yield its reports, the last one with its death if it died."""
    last: dict[str, Any] = {
        "inputs": 0, "cases": 0, "slowest": 0.0, "largest": 0, "seen": {}, "failures": [],
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="hostile-") as place:
        log = Path(place, "log")
        arguments = [task.target, str(task.seed), str(task.count), str(log)]
        with subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.worker", *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                last = json.loads(line)
                yield last
        if code := process.returncode:
            seed, *stack = [str(task.seed)]
            if log.exists():
                seed, *stack = log.read_text(errors="replace").splitlines() or [seed]
            failure = {
                "target": task.target,
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
