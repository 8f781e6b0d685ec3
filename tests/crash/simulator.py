"""Run a workload, crash it everywhere, and look at what is left."""

from __future__ import annotations

import gc
import random
from collections import Counter, deque
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import NamedTuple, Protocol

from tests.crash.clock import ManualClock
from tests.crash.disk import RecordedDisk
from tests.crash.expectation import Crash, Expectation, Found
from tests.crash.images import Limits, PowerCuts, killed_within
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


def cuts_of(number: int) -> Limits:
    """Return which power cuts of one moment a round tries."""
    if number == 0:
        return Limits(exhaustive=12, single=0, samples=0)
    return Limits(exhaustive=min(12 << 2 * number, 4096), single=1, samples=2)


AGAIN = Limits(exhaustive=4, single=1, samples=1)
"""Power cuts of one moment of a recovery."""
COLLECTED = 500
LEAST_YIELD = 60
"""A workload is done when fewer than one crash in so many leaves an image not seen before."""
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
    moments: int = 0
    crashes: Counter[str] = field(default_factory=Counter)
    left: dict[bytes, bool] = field(default_factory=dict)
    """By digest of each image: whether it is known only from a crash during a recovery."""
    violated: int = 0
    violations: list[Violation] = field(default_factory=list)
    """The first of them."""

    @property
    def distinct(self) -> int:
        """Return how many images differ from each other."""
        return len(self.left)

    @property
    def again(self) -> int:
        """Return how many of the distinct ones only a crash during a recovery left."""
        return sum(self.left.values())

    def add(self, other: Outcome) -> None:
        """Add what the same workload left with another seed."""
        self.images += other.images
        self.moments = max(self.moments, other.moments)
        self.crashes += other.crashes
        for digest, is_again in other.left.items():
            self.left[digest] = is_again and self.left.get(digest, True)
        self.violated += other.violated
        self.violations += other.violations[: TOLD - len(self.violations)]


class Image(NamedTuple):
    """What one crash left. `number`: round, moment, and which image; "/" before a second crash."""

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
        wanted: distinct images, if there are so many.
        again: one image in so many is crashed again during its recovery.
        only: number of the one image to look at.
        share: share of all moments that the first round tries, and each recovery; they are spread
            evenly, and each has about the same chance.
    """

    seed: int = 0
    wanted: int = 1000
    again: int = 50
    share: float = 1.0
    only: str | None = None


class Simulator:
    """Crashes one workload, in rounds.

    The first round has every kill, the plainest power cuts of every moment, and all power cuts of
    those moments that have few. The further ones draw from all other power cuts.
    """

    def __init__(self, workload: Workload, plan: Plan) -> None:
        self._workload, self._plan = workload, plan
        self.outcome = Outcome(workload.name)
        self._trace = record(workload)
        self._seen: dict[bytes, Found | None] = {}
        """By digest; None where a violation was reported."""
        self._same: dict[Found, Found] = {}
        self._rounds, self._yield = 0, 0.0
        self.is_exhausted = False

    def run(self) -> Outcome:
        """Try the crashes of the plan."""
        if self._plan.only is not None:
            self._round(int(self._plan.only.partition(".")[0]), 1.0)
        else:
            self.advance(self._plan.wanted)
        return self.outcome

    def advance(self, wanted: int) -> None:
        """Try more crashes until there were so many distinct images, or hardly any new ones."""
        while not self.is_exhausted and (missing := wanted - len(self._seen)) > 0:
            first = self._plan.share
            share = min(1.0, missing / max(1, self._yield)) if self._rounds else first
            known = len(self._seen)
            tried = self._round(self._rounds, share)
            fresh = len(self._seen) - known
            self._rounds += 1
            self._yield = fresh / share
            self.is_exhausted = fresh * LEAST_YIELD < tried or not tried

    def _round(self, number: int, share: float) -> int:
        """Try one round's crashes, at a share of all moments; return how many there were."""
        disk, expectation, story = PendingDisk(EMPTY), Expectation(), Story()
        before, tried = disk.now(), self.outcome.images
        steps = list(moments(self._trace))
        chosen = spread(self._dice(str(number), "share"), len(steps), share)
        for moment, (step, notes) in enumerate(steps):
            disk.apply(step)
            story.tell(step)
            now, name = disk.now(), f"{number}.{moment}"
            is_tried = moment in chosen
            if number == 0:
                self.outcome.moments += 1
                if is_tried:
                    self._try_all(_halves(name, now, before, step), expectation, story.lines)
            for note in notes:
                expectation.note(note)
            if is_tried and number == 0:
                whole = Image(f"{name}.k", Crash.KILL, now, disk)
                self._try_all(chain([whole], self._cuts(name, disk, 0)), expectation, story.lines)
            elif is_tried:
                self._try_all(self._cuts(name, disk, number), expectation, story.lines)
            before = now
        return self.outcome.images - tried

    def _dice(self, *what: str) -> random.Random:
        return random.Random("/".join((str(self._plan.seed), self._workload.name, *what)))

    def _cuts(self, moment: str, disk: PendingDisk, number: int) -> Iterator[Image]:
        cuts = PowerCuts(disk)
        if number > 0 and cuts.combinations <= cuts_of(number - 1).exhaustive:
            return  # all of them were tried in a round before
        images = cuts.images(self._dice(moment), cuts_of(number))
        for place, content in enumerate(images):
            yield Image(f"{moment}.p{place}", Crash.POWER_CUT, content)

    def _try_all(self, images: Iterable[Image], expectation: Expectation, story: list[str]) -> None:
        for image in images:
            self._try(image, expectation, story)

    def _try(self, image: Image, expectation: Expectation, story: list[str]) -> None:
        if not self._is_wanted(image.number):
            return
        self.outcome.images += 1
        self.outcome.crashes[image.crash.value] += 1
        digest = image.content.digest()
        try:
            if digest not in self._seen:
                self._seen[digest] = None
                self.outcome.left[digest] = "/" in image.number
                if len(self._seen) % COLLECTED == 0:
                    gc.collect()  # stores that died in a crash hold each other
                disk = RecordedDisk(image.content, ManualClock(START + DEAD_FOR))
                found = self._workload.examine(disk)
                found = self._seen[digest] = self._same.setdefault(found, found)
                expectation.check(found, image.crash)
                if self._is_followed(image.number):
                    later = expectation.clone()
                    later.allow_lowered(found)
                    self._crash_again(image, disk.trace, later, story)
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
        return self._dice(number, "again").randrange(self._plan.again) == 0

    def _crash_again(
        self, first: Image, trace: list[Step], expectation: Expectation, story: list[str]
    ) -> None:
        """Crash during the recovery from a crash, too."""
        disk = first.pending.clone() if first.pending else PendingDisk(first.content)
        before = disk.now()
        story = [*story, first.crash.value]
        steps = list(moments(trace))
        dice = self._dice(first.number, "share of the recovery")
        chosen = spread(dice, len(steps), self._plan.share)
        for moment, (step, notes) in enumerate(steps):
            disk.apply(step)
            now, name = disk.now(), f"{first.number}/{moment}"
            is_tried = moment in chosen
            if is_tried:
                halves = _halves(name, now, before, step)
                self._try_all(_lasting(first, halves), expectation, story)
            for note in notes:
                expectation.note(note)
            if is_tried:
                whole = [Image(f"{name}.k", Crash.KILL, now)]
                cuts = PowerCuts(disk).images(self._dice(name), AGAIN)
                powerless = (
                    Image(f"{name}.p{place}", Crash.POWER_CUT, cut)
                    for place, cut in enumerate(cuts)
                )
                self._try_all(_lasting(first, chain(whole, powerless)), expectation, story)
            before = now

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


def _halves(moment: str, now: Snapshot, before: Snapshot, step: Step | None) -> Iterator[Image]:
    for number, content in enumerate(killed_within(now, before, step)):
        yield Image(f"{moment}.h{number}", Crash.KILL, content)


def _lasting(first: Image, images: Iterable[Image]) -> Iterator[Image]:
    """What a power cut took is not there after a kill either."""
    for image in images:
        yield image if first.crash is Crash.KILL else image._replace(crash=first.crash)


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


def spread(dice: random.Random, count: int, share: float) -> Container[int]:
    """Return that share of `count` numbers from 0 on, at least one: one of each part, drawn."""
    if share >= 1.0:
        return range(count)
    parts = max(1, round(count * share))
    bounds = (count * part // parts for part in range(parts + 1))
    return {dice.randrange(start, end) for start, end in pairwise(bounds)}


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
