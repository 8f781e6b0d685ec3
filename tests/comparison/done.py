"""Which failures of which workloads were compared. A part is all failures of one kind in one."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from tests.comparison import draw
from tests.comparison.all import ALL, MODULES
from tests.done_parts import DoneParts, PartRun, part_name, workload_of

PATH = Path(__file__).with_name("done.json")


class Compared(msgspec.Struct, frozen=True):
    """What came of a part: how many failures, and what was violated."""

    failures: int
    violations: list[str]


def all_parts() -> list[str]:
    """Return the names of all parts, in the order of the workloads."""
    return [part_name(each.name, failure) for each in ALL for failure in each.failures]


def compared(path: Path = PATH) -> DoneParts[Compared]:
    """Return what earlier runs compared."""
    return DoneParts(path, Compared, _module_of)


def comparing() -> PartRun[Compared]:
    """Return what compares parts."""
    return PartRun(_compare, _module_of, _quieten)


def _module_of(part: str) -> str:
    return MODULES[workload_of(part)]


def _compare(part: str) -> Compared:
    name, _, failure = part.partition(" ")
    tally = draw.run_kind(next(each for each in ALL if each.name == name), failure)
    return Compared(tally.failures.total(), tally.violations)


def _quieten() -> None:
    logging.disable(logging.CRITICAL)
