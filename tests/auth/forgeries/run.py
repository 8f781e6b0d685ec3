"""Run forgeries, and count what was wrong."""

from __future__ import annotations

import logging
import random
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.auth.forgeries.gate import Gate, Refusals
from tests.auth.forgeries.kinds import KINDS, right

_HONEST = 20
"""One honest request in so many forgeries."""


@dataclass
class Outcome:
    """What happened.

    Attributes:
        counts: forgeries by kind.
        honest: honest requests, all of which must be served.
        log_lines: lines that were searched for passwords.
    """

    counts: Counter[str] = field(default_factory=Counter[str])
    honest: int = 0
    log_lines: int = 0
    violations: list[str] = field(default_factory=list[str])


def run(count: int, seed: int, progress: Callable[[int], object] = lambda _: None) -> Outcome:
    """Run so many forgeries; each is repeated by its seed, which counts up."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as directory, searched() as refusals:
        gate = Gate(Path(directory))
        names = list(KINDS)
        for number in range(count):
            kind = names[(seed + number) % len(names)]
            wrong = one(gate, kind, seed + number, refusals)
            outcome.counts[kind] += 1
            if number % _HONEST == 0:
                outcome.honest += 1
                wrong = wrong or right(gate, random.Random(seed + number))
            if wrong:
                outcome.violations.append(f"{kind}, seed {seed + number}: {wrong}")
            if number % 10_000 == 0:
                progress(number)
        outcome.log_lines = refusals.lines
        outcome.violations += refusals.leaks
    return outcome


def one(gate: Gate, kind: str, seed: int, refusals: Refusals) -> str:
    """Return what was wrong with one forgery."""
    try:
        return KINDS[kind](gate, random.Random(seed))
    except Exception as error:  # noqa: BLE001 (whatever it is, it must not happen)
        refusals.look("".join(traceback.format_exception(error)), "traceback")
        return f"{type(error).__name__}: {error}"


@contextmanager
def searched() -> Generator[Refusals]:
    """Search everything that mqlake logs meanwhile, at all levels."""
    refusals, log = Refusals(), logging.getLogger("mqlake")
    level, propagates = log.level, log.propagate
    log.addHandler(refusals)
    log.setLevel(logging.DEBUG)
    log.propagate = False
    try:
        yield refusals
    finally:
        log.removeHandler(refusals)
        log.setLevel(level)
        log.propagate = propagates
