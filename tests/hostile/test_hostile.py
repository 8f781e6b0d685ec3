"""Hostile inputs: 5,000 for each kind of store and 10,000 for the network.

`make nightly` runs a million for each kind of store, and five for the network.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from mqlake.formats.record import Fault
from tests.hostile import fleet, page, stores
from tests.hostile.__main__ import NIGHTLY
from tests.hostile.cases import Case, Target
from tests.hostile.targets import TARGETS, jobs
from tests.hostile.worker import Worker

COUNTS = {
    "record": 2_500,
    "record-cut": 500,
    "scan": 875,
    "scan-cut": 250,
    "scan-bounds-checked": 350,
    "traps": 4,
    "index": 300,
    "index-bounds-checked": 75,
    "documents": 250,
    "reader": 50,
    "rebuild-verify": 18,
    "commands": 8,
    "corpus": 1,
    "kafka-batches": 4_500,
    "kafka-scan": 450,
    "kafka-scan-bounds-checked": 200,
    "kafka-partitions": 50,
    "kafka-bombs": 20,
    "runs-bounds-checked": 1_250,
    "frames": 8_000,
    "name-server": 400,
    "broker": 400,
}
NETWORK = {"runs-bounds-checked", "frames", "name-server", "broker"}


def system(target: str) -> str:
    """Return what a target's inputs are for."""
    if target in NETWORK:
        return "network"
    return "kafka" if target.startswith("kafka") else "rocketmq"


def by_system(counts: Iterable[tuple[str, int]]) -> Counter[str]:
    """Add up inputs."""
    sums: Counter[str] = Counter()
    for target, count in counts:
        sums[system(target)] += count
    return sums


def test_each_target_runs_and_there_are_enough_inputs() -> None:
    assert COUNTS.keys() == TARGETS.keys()
    sums = by_system(COUNTS.items())
    assert sums["network"] >= 10_000
    assert min(sums["kafka"], sums["rocketmq"]) >= 5_000


def test_nightly_runs_a_million_for_each_kind_of_store_and_five_for_the_network() -> None:
    tasks = fleet.share_out(NIGHTLY, 1, 1)
    sums = by_system((task.target, task.count) for task in tasks)
    assert sums["network"] >= 5_000_000
    assert min(sums["kafka"], sums["rocketmq"]) >= 1_000_000


@pytest.fixture(scope="module")
def tallies() -> dict[str, fleet.Tally]:
    """What became of all inputs, in processes of their own: a crash is a failure like any other."""
    return fleet.run_together([fleet.Task(name, 1, count) for name, count in COUNTS.items()])


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.timeout(600)
def test_hostile_input(name: str, tallies: dict[str, fleet.Tally]) -> None:
    tally = tallies[name]
    assert not tally.failures, "\n".join(map(fleet.describe, tally.failures))
    assert tally.inputs >= COUNTS[name]
    if name in ("record", "scan"):
        missing = {fault.name for fault in Fault} - tally.seen.keys()
        # Only recovery says TORN.
        assert not missing - {"TORN"} - ({"BLANK"} if name == "record" else set())


def test_stores_are_sound_before_they_are_mutated() -> None:
    for seed in range(20):
        jobs.sound(Case.of("sound", seed))


def test_a_case_can_be_run_again() -> None:
    first, second = (stores.mutated(Case.of("reader", 7)).files for _ in range(2))
    assert first == second
    assert first != stores.sound(random.Random("reader/7")).files


def _crash(case: Case) -> None:
    case.feed(1)
    raise IndexError("out of bounds")


def _waste(case: Case) -> None:
    case.feed(1)
    bytearray(b"x" * (200 << 20))


def notice(run: object) -> str:
    """Return what a worker says of a target that violates the rules."""
    TARGETS["broken"] = Target("broken", "", run, 1.0)
    with tempfile.TemporaryFile("w") as log:
        *_, report = Worker("broken", log).run(seed=5, count=3)
    assert report["failures"][-1]["seed"] == 7
    return report["failures"][-1]["error"]


@pytest.mark.parametrize(("run", "error"), [("_crash", "IndexError: out"), ("_waste", "MiB for 1")])
def test_violations_are_noticed(run: str, error: str) -> None:
    # In a process of its own, because memory is measured by the most that a process ever had.
    code = f"from tests.hostile import test_hostile as t; print(t.notice(t.{run}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert error in done.stdout


def test_a_process_that_dies_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet.sys, "executable", "/bin/false")
    (failure,) = fleet.run([fleet.Task("record", 3, 10)], 1)["record"].failures
    assert "exit code 1" in failure["error"]
    assert "--target record --seed 3" in fleet.describe(failure)


def test_a_hang_ends_the_process_and_leaves_its_stack(tmp_path: Path) -> None:
    code = """
import sys, time
from pathlib import Path
from tests.hostile import worker
from tests.hostile.cases import Target
def asleep(case):
    time.sleep(300)
worker.HANG, worker.FIRST = 1, 1
worker.TARGETS["asleep"] = Target("asleep", "", asleep, 1.0)
worker.main(Path(sys.argv[1]), ("asleep", 5, 1))
"""
    log = tmp_path / "log"
    done = subprocess.run([sys.executable, "-c", code, log], cwd=fleet.ROOT, check=False)
    assert done.returncode == 1
    assert log.read_text().startswith("5\n")
    assert "in asleep" in log.read_text()


def test_shares_make_up_the_whole() -> None:
    tasks = fleet.share_out(1_000_000, 5, 2)
    assert {task.target for task in tasks} == TARGETS.keys()
    assert 1_000_000 <= sum(task.count for task in tasks) < 1_000_100
    assert len({(task.target, task.seed) for task in tasks}) == len(tasks)


def test_page(tmp_path: Path) -> None:
    tally = fleet.Tally(inputs=1234)
    tally.failures.append(
        {"target": "scan", "seed": 9, "error": "E", "story": ["flip"], "where": "here"}
    )
    page.write({"scan": tally}, 9, 60.0, 2, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert "**1,234 inputs, 1 violations**" in text
    assert "--target scan --seed 9" in text
    assert TARGETS["scan"].says in text
