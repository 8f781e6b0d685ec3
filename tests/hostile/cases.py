"""One call of a target: what it draws from, and what it has to tell."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple


class BrokenError(AssertionError):
    """Something that must hold on every input did not."""


@dataclass
class Case:
    """The dice of one seed; `story` says what was done to the inputs, `seen` what came of them."""

    dice: random.Random
    story: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    inputs: int = 0
    size: int = 0

    @classmethod
    def of(cls, target: str, seed: int) -> Case:
        return cls(random.Random(f"{target}/{seed}"))

    def feed(self, size: int, *, inputs: int = 1) -> None:
        """Count inputs: mutated records, or mutated files. `size` is in bytes."""
        self.inputs += inputs
        self.size += size

    def tell(self, what: str) -> None:
        """Add to the story."""
        self.story.append(what)

    def chance(self, share: float) -> bool:
        return self.dice.random() < share


class Target(NamedTuple):
    """Something that takes bytes from a disk or a name from a user, and what must hold on it."""

    name: str
    says: str
    run: Callable[[Case], None]
    share: float
    """Of all inputs."""
    bounds_checked: bool = False
    """Runs with the bounds-checking build of the kernels."""


def require(holds: bool, what: str) -> None:
    if not holds:
        raise BrokenError(what)


def same(first: object, second: object, what: str) -> None:
    if first != second:
        raise BrokenError(f"{what} differ:\n  {_short(first)}\n  {_short(second)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 1000 else f"{text[:1000]}…"
