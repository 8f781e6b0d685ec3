"""Which workloads were crashed, with which seeds. A part is one workload with all of its seeds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tests.crash.fleet import AGAIN, DRAWN, quieten
from tests.crash.simulator import Outcome, Plan, Simulator
from tests.crash.workloads import ALL, PREFIX, find
from tests.done_parts import DoneParts, PartRun, part_name, workload_of

PATH = Path(__file__).with_name("done.json")
NIGHTLY, SEEDS = 1_000_000, 4
_DRAWN_OF_A_SEED = 100_000
"""Numbers of drawn workloads that belong to one seed."""


class Crashed(msgspec.Struct, frozen=True):
    """What came of a part: counts as in `Outcome`, and the violations as they are told."""

    seed: int
    moments: int
    images: int
    distinct: int
    again: int
    violated: int
    violations: list[str]


def crashed(path: Path = PATH) -> DoneParts[Crashed]:
    """Return what earlier runs crashed."""
    return DoneParts(path, Crashed, _module_of)


def crashing() -> PartRun[Crashed]:
    """Return what crashes workloads."""
    return PartRun(_crash, _module_of, quieten)


def missing(parts: DoneParts[Crashed], seed: int, images: int) -> Iterator[str]:
    """Yield what is to be done until there are so many images with the code as it is.

    First each workload that has no part, then drawn ones. It is asked again after each part that is
    done, so that it knows what has come of those before.
    """
    done = {workload_of(part.name) for part in parts.current()}
    yield from (part_name(name, seed) for name in ALL if name not in done)
    for number in itertools.count(seed * _DRAWN_OF_A_SEED):
        if sum(part.result.distinct for part in parts.current()) >= images:
            return
        if (name := f"{PREFIX}{number}") not in done:
            yield part_name(name, seed)


def _module_of(part: str) -> str:
    workload = find(workload_of(part))
    script = getattr(workload, "script", None)
    return (workload if script is None else script).__module__


def _crash(part: str) -> Crashed:
    name, _, text = part.partition(" ")
    seed, whole = int(text), Outcome(name)
    if name.startswith(PREFIX):
        whole = Simulator(find(name), Plan(seed, DRAWN, AGAIN)).run()
    else:
        for each in range(seed, seed + SEEDS):
            plan = Plan(each, NIGHTLY // len(ALL) // SEEDS, AGAIN)
            whole.add(Simulator(find(name), plan).run())
    return Crashed(
        seed=seed,
        moments=whole.moments,
        images=whole.images,
        distinct=whole.distinct,
        again=whole.again,
        violated=whole.violated,
        violations=[violation.describe() for violation in whole.violations],
    )
