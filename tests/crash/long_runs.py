"""What a nightly run does besides crash images: every fault, two hundred kills."""

from __future__ import annotations

import multiprocessing
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.crash import faults
from tests.crash.faults import Ending
from tests.crash.faulty import Fault
from tests.crash.fleet import quieten, workers
from tests.crash.kill import Kills
from tests.crash.workloads import WORKLOADS
from tests.reliability import PATH, machine, versions, write_section

KILLS = 200
FLUSHES = ("SYNC_FLUSH", "ASYNC_FLUSH")
_VIOLATED = "violated"


@dataclass
class FaultTally:
    """What came of refusing each operation: runs by fault and ending, and what was violated."""

    runs: Counter[tuple[str, str]] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def add(self, other: FaultTally) -> None:
        self.runs += other.runs
        self.violations += other.violations

    def count(self, fault: Fault, ending: Ending | None = None) -> int:
        """Return how many runs a fault had, all or those that ended in one way."""
        endings = [ending.value] if ending else [_VIOLATED, *(each.value for each in Ending)]
        return sum(self.runs[fault.name, each] for each in endings)


def every_fault(name: str) -> FaultTally:
    """Run a workload once for each operation that each fault concerns."""
    tally = FaultTally()
    for fault in Fault:
        at, has_failed = 0, True
        while has_failed:
            at += 1
            try:
                done = faults.run(WORKLOADS[name], fault, at)
                has_failed, ending = done.has_failed, done.ending.value if done.ending else ""
            except Exception as error:  # noqa: BLE001 (whatever it is, it is what we look for)
                ending = _VIOLATED
                tally.violations.append(f"{name}, {fault.name} at {at}: {error}")
            if has_failed:
                tally.runs[fault.name, ending] += 1
    return tally


def run_faults(tell: Callable[[str], None]) -> FaultTally:
    """Run all workloads with all faults."""
    whole = FaultTally()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers(), context, initializer=quieten) as pool:
        for name, tally in zip(WORKLOADS, pool.map(every_fault, WORKLOADS), strict=True):
            whole.add(tally)
            tell(f"{name}: {tally.runs.total()} faults, {len(tally.violations)} violations")
    return whole


def run_kills(seed: int, tell: Callable[[str], None]) -> tuple[list[Kills], list[str]]:
    """Kill processes, half of them under each way of flushing; return what was violated, too."""
    done: list[Kills] = []
    violations: list[str] = []
    for flush in FLUSHES:
        with tempfile.TemporaryDirectory(prefix="kills-") as place:
            kills, dice = Kills(Path(place, "store"), flush), random.Random(f"{seed}/{flush}")
            done.append(kills)
            try:
                while kills.kills < KILLS // len(FLUSHES):
                    kills.kill_one(dice)
            except Exception as error:  # noqa: BLE001 (as above)
                violations.append(f"{flush}, kill {kills.kills}: {error}")
            tell(f"{flush}: {kills.kills} kills")
    return done, violations


def write_faults(tally: FaultTally, seconds: float, path: Path = PATH) -> None:
    """Write the section on faults."""
    write_section("Faulty disks", _fault_lines(tally, seconds), path)


_FAULTS = {
    "INPUT_OUTPUT": "I/O error",
    "FULL": "disk full",
    "SHORT_WRITE": "short write",
    "NO_INODE": "no free inode",
    "SYNC": "failed sync",
    "NO_DESCRIPTOR": "no free file descriptor",
    "NO_MEMORY": "no memory for a mapping",
    "READ": "failed read",
}
_OPERATIONS = {
    "change": "write",
    "list": "list",
    "lock": "lock",
    "look": "check a file",
    "make": "create",
    "map": "map",
    "name": "rename or remove",
    "names": "sync a directory",
    "open": "open",
    "read": "read",
    "room": "reserve space",
    "sync": "sync a file",
}
"""What the page calls the kinds of operations that a fault affects."""


def _title(fault: Fault) -> str:
    """Return what the page calls a fault."""
    title = _FAULTS[fault.name.removesuffix("_FOR_EVER").removesuffix("_ONCE")]
    return f"{title}, {'from then on' if fault.for_ever else 'once'}"


def _fault_lines(tally: FaultTally, seconds: float) -> Iterator[str]:
    yield (
        "Written by `python -m tests.crash --nightly`. Each workload of [Crashes](#crashes) is "
        "repeated for each operation that a fault can affect: writing, reserving space, creating "
        "files and directories, renaming, removing, syncing, opening, mapping, reading, listing, "
        "locking. This operation fails, alone or with all later ones. The put must fail, what "
        "was dispatched must be readable, and a failed sync must end all puts. Then the process "
        "is killed, or the power is lost; on a healthy disk, the store must have everything that "
        "it acknowledged."
    )
    yield ""
    yield (
        "The running store is tested, too. Once the disk is healthy again, it must accept messages"
        " at the next put, dispatch and serve them, do all that falls due within a minute, stop"
        " cleanly, and be complete. Only a failed sync is final: then each put must be refused with"
        " that reason, and the stop must fail. If the store was not open when the workload ended,"
        " for example because the fault prevented its start, it is started in the same process."
    )
    yield ""
    counted = f"{tally.runs.total():,} faults over {len(WORKLOADS)} workloads"
    violated = f"{len(tally.violations)} violations"
    yield f"**{counted}, {violated}**, on {datetime.now(UTC):%Y-%m-%d}."
    yield ""
    yield f"{seconds / 60:.1f} minutes on {machine()}. {versions()}."
    yield ""
    yield (
        "| fault | operations that fail | runs | "
        + " | ".join(each.value for each in Ending)
        + " |"
    )
    yield "| --- | --- | ---: |" + " ---: |" * len(Ending)
    for fault in Fault:
        counts = [tally.count(fault), *(tally.count(fault, ending) for ending in Ending)]
        cells = " | ".join(f"{count:,}" for count in counts)
        operations = ", ".join(sorted(_OPERATIONS[kind] for kind in fault.kinds))
        yield f"| {_title(fault)} | {operations} | {cells} |"
    yield from _violation_lines(tally.violations)


def write_kills(
    done: list[Kills], violations: list[str], seconds: float, path: Path = PATH
) -> None:
    """Write the section on kills."""
    write_section("Killed processes", _kill_lines(done, violations, seconds), path)


def _kill_lines(done: list[Kills], violations: list[str], seconds: float) -> Iterator[str]:
    count = sum(kills.kills for kills in done)
    yield (
        "Written by `python -m tests.crash --nightly`. A separate process puts messages from nine"
        " tasks into a real directory, and is killed with SIGKILL at a random moment. Then every"
        " message that it had acknowledged must be there, once and unchanged, and must be found by"
        " queue and key."
    )
    yield ""
    yield f"**{count} kills, {len(violations)} violations**, on {datetime.now(UTC):%Y-%m-%d}."
    yield ""
    yield f"{seconds / 60:.1f} minutes on {machine()}. {versions()}."
    yield ""
    yield "| flush | kills | messages acknowledged |"
    yield "| --- | ---: | ---: |"
    for kills in done:
        yield f"| {kills.flush} | {kills.kills} | {kills.messages:,} |"
    yield from _violation_lines(violations)


def _violation_lines(violations: list[str]) -> Iterator[str]:
    if violations:
        yield "\n### Violations\n"
        for violation in violations:
            yield f"- {violation}"


def run_and_write_faults(tell: Callable[[str], None]) -> int:
    """Run all faults and write their section; return how much was violated."""
    start = time.monotonic()
    tally = run_faults(tell)
    write_faults(tally, time.monotonic() - start)
    return len(tally.violations)


def run_and_write_kills(seed: int, tell: Callable[[str], None]) -> int:
    """Kill processes and write their section; return how much was violated."""
    start = time.monotonic()
    done, violations = run_kills(seed, tell)
    write_kills(done, violations, time.monotonic() - start)
    return len(violations)
