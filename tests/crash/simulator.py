"""Run a workload, crash it everywhere, and look at what is left."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tests.crash.clock import ManualClock
from tests.crash.disk import RecordedDisk
from tests.crash.expectation import Crash, Expectation, Found
from tests.crash.images import Limits, PowerCuts, kills
from tests.crash.pending import PendingDisk
from tests.crash.snapshot import Snapshot
from tests.crash.trace import (
    ROOT,
    MakeFile,
    MakeFolder,
    Note,
    Remove,
    Rename,
    Resize,
    Step,
    Sync,
    SyncNames,
    Write,
)

EMPTY = Snapshot({ROOT: {}}, {})
START = 1_700_000_000_000
TOLD = 10
FULL = Limits()
PLAIN = Limits(exhaustive=1, single=0, samples=0)

AGAIN = Limits(exhaustive=4, single=1, samples=1)
"""Images of one moment of a recovery."""
DEAD_FOR = 60_000
"""Milliseconds until somebody starts the store again."""


class Workload(Protocol):
    """Something that a store is made to do, and how its directory is read after a crash."""

    @property
    def name(self) -> str: ...

    def run(self, disk: RecordedDisk, clock: ManualClock) -> None:
        """Work, and note what the store says with `disk.record(Note(…))`."""
        ...

    def examine(self, disk: RecordedDisk) -> Found:
        """Open what a crash left; leave the process that did it as if it had died thereafter.

        Raises:
            Exception: a violation.
        """
        ...


@dataclass
class Violation:
    """A crash after which something does not hold."""

    workload: str
    seed: int
    image: str
    crash: Crash
    story: list[str]
    error: Exception

    def describe(self) -> str:
        """Return what a person needs to see it again."""
        head = f"--workload {self.workload} --image {self.image} --seed {self.seed}"
        error = f"{type(self.error).__name__}: {self.error}"
        return "\n".join((head, error, *(f"    {line}" for line in self.story)))


@dataclass
class Outcome:
    """What came of crashing one workload."""

    name: str
    images: int = 0
    distinct: int = 0
    again: int = 0
    """Of the distinct ones, those of a crash during the recovery from another."""
    moments: int = 0
    crashes: Counter[str] = field(default_factory=Counter)
    violated: int = 0
    violations: list[Violation] = field(default_factory=list)
    """The first of them."""


class Image(NamedTuple):
    """What one crash left. `number` is the moment's and, after a point, which of its images."""

    number: str
    crash: Crash
    content: Snapshot
    pending: PendingDisk | None = None
    """After a kill, the disk as the next process finds it: not all is certain yet."""


@dataclass
class Plan:
    """Which crashes are tried.

    Attributes:
        seed: draws what is not enumerated.
        limits: images of one moment.
        every: one moment in so many has power cuts; kills and plain losses are never left out.
        again: one image in so many is crashed again during its recovery.
        only: number of the one image to look at.
    """

    seed: int = 0
    limits: Limits = FULL
    every: int = 1
    again: int = 50
    only: str | None = None


class Simulator:
    """Crashes one workload."""

    def __init__(self, workload: Workload, plan: Plan) -> None:
        self._workload, self._plan = workload, plan
        self.outcome = Outcome(workload.name)
        self._seen: dict[bytes, Found | None] = {}
        """By digest; None where a violation was reported."""

    def run(self) -> Outcome:
        """Try the crashes of the plan."""
        trace = record(self._workload)
        disk, expectation, story = PendingDisk(EMPTY), Expectation(), Story()
        for moment, (step, notes) in enumerate(moments(trace)):
            before = disk.now()
            disk.apply(step)
            story.tell(step)
            for note in notes:
                expectation.note(note)
            self.outcome.moments += 1
            for image in self._images(str(moment), disk, before, step, self._limits(moment)):
                self._try(image, expectation, story.lines)
        self.outcome.distinct = sum(found is not None for found in self._seen.values())
        return self.outcome

    def _limits(self, moment: int) -> Limits:
        plan = self._plan
        return plan.limits if plan.only or moment % plan.every == 0 else PLAIN

    def _images(
        self, moment: str, disk: PendingDisk, before: Snapshot, step: Step | None, limits: Limits
    ) -> Iterator[Image]:
        dice = random.Random(f"{self._plan.seed}/{self._workload.name}/{moment}")
        for number, content in enumerate(kills(disk.now(), before, step)):
            pending = disk if number == 0 else None
            yield Image(f"{moment}.k{number}", Crash.KILL, content, pending)
        for number, content in enumerate(PowerCuts(disk).images(dice, limits)):
            yield Image(f"{moment}.p{number}", Crash.POWER_CUT, content, None)

    def _try(self, image: Image, expectation: Expectation, story: list[str]) -> None:
        if not self._is_wanted(image.number):
            return
        self.outcome.images += 1
        self.outcome.crashes[image.crash.value] += 1
        digest = image.content.digest()
        try:
            if digest not in self._seen:
                self._seen[digest] = None
                disk = RecordedDisk(image.content, ManualClock(START + DEAD_FOR))
                found = self._seen[digest] = self._workload.examine(disk)
                expectation.check(found, image.crash)
                if self._is_followed(image.number):
                    self._crash_again(image, disk.trace, expectation.clone(), story)
            elif (found := self._seen[digest]) is not None:
                expectation.check(found, image.crash)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is what we look for)
            self._seen[digest] = None
            self._report(image, story, error)

    def _is_wanted(self, number: str) -> bool:
        return self._plan.only is None or f"{self._plan.only}/".startswith(f"{number}/")

    def _is_followed(self, number: str) -> bool:
        if "/" in number:
            return False
        if self._plan.only is not None:
            return self._plan.only != number
        return self.outcome.images % self._plan.again == 0

    def _crash_again(
        self, first: Image, trace: list[Step], expectation: Expectation, story: list[str]
    ) -> None:
        """Crash during the recovery from a crash, too."""
        disk = first.pending.clone() if first.pending else PendingDisk(first.content)
        known = len(self._seen)
        story = [*story, first.crash.value]
        for moment, (step, notes) in enumerate(moments(trace)):
            before = disk.now()
            disk.apply(step)
            for note in notes:
                expectation.note(note)
            for image in self._images(f"{first.number}/{moment}", disk, before, step, AGAIN):
                lasting = image if first.crash is Crash.KILL else image._replace(crash=first.crash)
                self._try(lasting, expectation, story)
        self.outcome.again += len(self._seen) - known

    def _report(self, image: Image, story: list[str], error: Exception) -> None:
        self.outcome.violated += 1
        if len(self.outcome.violations) < TOLD:
            self.outcome.violations.append(
                Violation(
                    self._workload.name,
                    self._plan.seed,
                    image.number,
                    image.crash,
                    [*story, image.crash.value],
                    error,
                )
            )


def record(workload: Workload) -> list[Step]:
    """Return what a workload does to an empty disk, and what it notes."""
    clock = ManualClock(START)
    disk = RecordedDisk(EMPTY, clock)
    workload.run(disk, clock)
    disk.check_announced()
    return disk.trace


def moments(trace: list[Step]) -> Iterator[tuple[Step | None, list[object]]]:
    """Yield each step with the notes that follow it; first those before all, with no step."""
    step: Step | None = None
    notes: list[object] = []
    for item in trace:
        if isinstance(item, Note):
            notes.append(item.what)
        else:
            yield step, notes
            step, notes = item, []
    yield step, notes


class Story:
    """The last steps, with names in place of numbers."""

    def __init__(self) -> None:
        self._paths = {ROOT: ""}
        self._last: deque[str] = deque(maxlen=12)

    @property
    def lines(self) -> list[str]:
        return list(self._last)

    def tell(self, step: Step | None) -> None:
        """Add a step."""
        text = "start"
        match step:
            case MakeFile(folder, name, node) | MakeFolder(folder, name, node):
                self._paths[node] = f"{self._paths[folder]}/{name}"
                text = f"make {self._paths[node]}"
            case Rename(folder, name, new_folder, new_name):
                text = (
                    f"rename {self._paths[folder]}/{name} to {self._paths[new_folder]}/{new_name}"
                )
            case Remove(folder, name):
                text = f"remove {self._paths[folder]}/{name}"
            case Resize(node, size):
                text = f"resize {self._paths[node]} to {size}"
            case Write(node, offset, data, is_mapped):
                how = "change" if is_mapped else "write"
                text = f"{how} {self._paths[node]} [{offset}, {offset + len(data)})"
            case Sync(node, failed) | SyncNames(node, failed):
                text = f"sync {self._paths[node] or '/'}{' in vain' if failed else ''}"
            case _:
                pass
        self._last.append(text)
