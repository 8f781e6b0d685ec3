"""Run a workload with one failure, and compare it with the run without one.

After each step in which an operation fails:

- Whoever asked is answered: with a success, or with an error of mqlake that is one line and says
  what failed.
- What was acknowledged before is there, for users of the running process and for the next process
  after a kill. What was refused is not there, if the step is all or nothing.
- The same step succeeds when it is tried again, and everything is then as in the run without a
  failure. Only a failed sync is final: then the process is killed, and the next one continues.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from mqlake.errors import MqlakeError, StoreError
from tests.crash.expectation import require

View = Mapping[str, object]
"""What somebody sees, by name: sequences of messages, offsets, tables."""

ATTEMPTS = 4
"""A failure may strike one attempt, and be noticed by the next one."""


class PerhapsError(StoreError):
    """A refusal that says that what was asked for may be done nevertheless."""


class Step(NamedTuple):
    """One thing that a user asks for.

    Attributes:
        act: does it, and returns once it is acknowledged.
        is_atomic: whether a refusal means that nothing of it is there. It must not be done twice.
        is_exact: whether everything is as in the run without a failure once it is done; otherwise
            a later step has the rest.
    """

    name: str
    act: Callable[[], object]
    is_atomic: bool = False
    is_exact: bool = True


class World(Protocol):
    """What a workload runs in, and the one operation that fails in it."""

    @property
    def failure(self) -> tuple[str, int] | None:
        """What has failed so far: the name of a file or connection, and the system's number."""
        ...

    @property
    def is_final(self) -> bool:
        """Whether what has failed was a sync: no later success makes it good."""
        ...

    def count(self, failure: str) -> int:
        """Return how many operations could have failed so far with this kind of failure."""
        ...

    def restart(self) -> None:
        """End the process, as a kill does: whoever comes next finds what was written."""
        ...


class Subject(Protocol):
    """What a workload does to something in one world."""

    def steps(self) -> Iterator[Step]:
        """Yield the steps; what one returns depends on no failure."""
        ...

    def look(self) -> View | None:
        """Return what users of the running process see; None if none runs."""
        ...

    def left(self) -> View:
        """Return what the next process would find if this one were killed now."""
        ...

    def revive(self) -> None:
        """Start the next process, after `World.restart`."""
        ...

    def close(self) -> None:
        """End the run."""
        ...


class Workload(Protocol):
    """A workload: `failures` are the kinds of operations that can fail in it."""

    @property
    def name(self) -> str: ...

    @property
    def failures(self) -> Sequence[str]: ...

    def begin(self, failure: str, at: int) -> tuple[World, Subject]:
        """Return a world whose `at`-th operation of a kind fails, from 1 on; 0 for none."""
        ...


class Moment(NamedTuple):
    """What is there after a step of the run without a failure."""

    step: str
    seen: View | None
    left: View


@dataclass
class Reference:
    """The run without a failure: its moments, and how many operations of each kind it has."""

    moments: list[Moment] = field(default_factory=list)
    operations: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.operations.values())


def refer(workload: Workload, failures: Sequence[str] = ()) -> Reference:
    """Run a workload without a failure; count the operations of some kinds, or of all."""
    reference, kinds = Reference(), failures or workload.failures
    world, subject = workload.begin(kinds[0], 0)
    with closing(subject):
        for step in subject.steps():
            step.act()
            reference.moments.append(Moment(step.name, subject.look(), subject.left()))
    reference.operations = {failure: world.count(failure) for failure in kinds}
    return reference


def compare(workload: Workload, reference: Reference, failure: str, at: int) -> bool:
    """Run a workload with one failure; return whether it came.

    Raises:
        Exception: a violation.
    """
    world, subject = workload.begin(failure, at)
    run, before = _Run(world, subject), Moment("nothing", {}, {})
    with closing(subject):
        for number, step in enumerate(subject.steps()):
            after = reference.moments[number]
            require(step.name == after.step, f"{step.name} instead of {after.step}")
            run.do(step, before, after)
            before = after
    return world.failure is not None


class _Run:
    def __init__(self, world: World, subject: Subject) -> None:
        self._world, self._subject = world, subject
        self._is_over = False

    def do(self, step: Step, before: Moment, after: Moment) -> None:
        """Do a step until it is acknowledged, and compare."""
        last: MqlakeError | None = None
        for _ in range(ATTEMPTS):
            had_failed = self._world.failure is not None
            try:
                step.act()
            except MqlakeError as error:
                last = error
                self._check_error(step.name, error, is_first=not had_failed)
                if not self._refused(step, error, before, after):
                    continue
            rule = _same if step.is_exact else _between
            self._check_seen(rule, before, after, step.name)
            if self._has_struck(had_failed):
                _check(
                    _between, self._subject.left(), before.left, after.left, f"{step.name}, left"
                )
            return
        require(holds=False, what=f"{step.name}: tried again, it still fails: {last}")

    def _has_struck(self, had_failed: bool) -> bool:
        return self._world.failure is not None and not had_failed

    def _check_seen(self, rule: Rule, before: Moment, after: Moment, where: str) -> None:
        if (seen := self._look(where)) is not None:
            _check(rule, seen, before.seen, after.seen, f"{where}, seen")

    def _look(self, where: str) -> View | None:
        """Return what users see; one of their reads may be the operation that fails."""
        had_failed = self._world.failure is not None
        try:
            seen = self._subject.look()
        except MqlakeError as error:
            self._check_error(f"{where}, seen", error, is_first=not had_failed)
            require(not had_failed, f"{where}: a read fails again: {error}")
            return self._subject.look()
        # What it found without an error is true, or is completed by the next look.
        return self._subject.look() if self._has_struck(had_failed) else seen

    def _check_error(self, where: str, error: MqlakeError, *, is_first: bool) -> None:
        failure = self._world.failure
        require(failure is not None, f"{where}: nothing has failed, but: {error}")
        assert failure is not None
        path, number = failure
        text = str(error)
        require("\n" not in text and text.strip() != "", f"{where}: not one line: {text!r}")
        if is_first:
            says = os.strerror(number) in text or path.rpartition("/")[2] in text
            require(says, f"{where}: does not say what has failed ({path}): {text}")

    def _refused(self, step: Step, error: MqlakeError, before: Moment, after: Moment) -> bool:
        """Compare after a refusal; return whether the step is done nevertheless."""
        is_final = self._world.is_final and not self._is_over
        is_known = step.is_atomic and not isinstance(error, PerhapsError) and not is_final
        rule = _before if is_known else _between
        _check(rule, self._subject.left(), before.left, after.left, f"{step.name} refused, left")
        if not is_final:
            self._check_seen(rule, before, after, f"{step.name} refused")
            if not isinstance(error, PerhapsError):
                return False
        else:
            self._is_over = True
            self._world.restart()
            self._subject.revive()
        if not (step.is_atomic or isinstance(error, PerhapsError)):
            return False  # Doing it twice does no harm.
        seen = self._look(step.name)
        if seen is None or before.seen == after.seen:
            return False
        return not _differences(_same, seen, before.seen, after.seen)


Rule = Callable[[object, object, object], bool]


def _same(now: object, before: object, after: object) -> bool:
    del before
    return now == after


def _before(now: object, before: object, after: object) -> bool:
    del after
    return now == before or (before is None and now == ())


def _between(now: object, before: object, after: object) -> bool:
    """Return whether a part of what changes between the two has changed, and nothing else."""
    if now in (before, after):
        return True
    if isinstance(before, int) and isinstance(after, int):
        return isinstance(now, int) and min(before, after) <= now <= max(before, after)
    values = [{*value} if isinstance(value, tuple) else set() for value in (before, now, after)]
    return values[0] & values[2] <= values[1] <= values[0] | values[2]


def _differences(rule: Rule, now: View, before: View | None, after: View | None) -> list[str]:
    if before is None or after is None:
        return []  # A step that starts or stops it: the next one compares.
    names = sorted({*now, *before, *after})
    return [
        f"{name} is {now.get(name)}, was {before.get(name)}, should be {after.get(name)}"
        for name in names
        if not rule(now.get(name), before.get(name), after.get(name))
    ]


def _check(rule: Rule, now: View, before: View | None, after: View | None, where: str) -> None:
    found = _differences(rule, now, before, after)
    require(not found, f"{where}: {'; '.join(found[:3])}")
