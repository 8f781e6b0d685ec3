"""Which failures of which workloads were compared, on which code: the next run has the others."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from tests.comparison.all import ALL, MODULES
from tests.comparison.draw import Tally
from tests.proved_code import code_of

PATH = Path(__file__).with_name("done.json")


class Part(NamedTuple):
    """All failures of one kind in one workload."""

    workload: str
    failure: str


class Compared(msgspec.Struct, frozen=True):
    """What came of a part, of which code, when, and how long it took."""

    workload: str
    failure: str
    failures: int
    violations: list[str]
    code: str
    day: str
    seconds: float

    @classmethod
    def now(cls, part: Part, tally: Tally, code: str, seconds: float) -> Self:
        """Return what came of a part that was compared just now."""
        today = f"{datetime.now(UTC):%Y-%m-%d}"
        failures, violations = tally.failures.total(), tally.violations
        return cls(*part, failures, violations, code, today, round(seconds, 1))

    @property
    def part(self) -> Part:
        """Which part it is."""
        return Part(self.workload, self.failure)

    @property
    def is_current(self) -> bool:
        """Whether nothing that the workload runs has changed since."""
        return self.code == code_of(MODULES[self.workload])


class Done:
    """What earlier runs and this one compared, in a file.

    Args:
        path: the file; it may not exist yet.
    """

    def __init__(self, path: Path = PATH) -> None:
        self._path = path
        found = msgspec.json.decode(path.read_bytes(), type=list[Compared]) if path.exists() else []
        self._compared = {each.part: each for each in found}

    def missing(self, names: frozenset[str] | None = None) -> list[Part]:
        """Return the parts that were never compared, or that were with other code."""
        return [
            part
            for part in _parts()
            if names is None or part.workload in names
            if (found := self._compared.get(part)) is None or not found.is_current
        ]

    def add(self, compared: Compared) -> None:
        """Keep what came of a part, in the file too: a run may be ended at any time."""
        self._compared[compared.part] = compared
        lines = ",\n".join(msgspec.json.encode(each).decode() for each in self.in_order())
        self._path.write_text(f"[\n{lines}\n]\n")

    def in_order(self) -> Iterator[Compared]:
        """Yield what came of each part that was compared, in the order of the workloads."""
        return (self._compared[part] for part in _parts() if part in self._compared)


def _parts() -> list[Part]:
    return [Part(workload.name, failure) for workload in ALL for failure in workload.failures]
