"""What is killed when in a run: drawn from its seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

KINDS = (
    "kill a worker",
    "kill the broker",
    "kill a worker and the broker",
    "kill a process of a pool",
    "stop a worker",
    "stop the broker",
)


@dataclass(frozen=True)
class Kill:
    """One kill.

    Attributes:
        kind: one of KINDS.
        wait: seconds after the one before it.
        down: seconds until what was killed is started again.
        worker: index of the worker.
    """

    kind: str
    wait: float
    down: float
    worker: int


def draw(seed: int, count: int, workers: int) -> Sequence[Kill]:
    """Return the kills of a seed."""
    dice = random.Random(seed)
    return [
        Kill(
            dice.choice(KINDS),
            dice.uniform(0.1, 2.0),
            dice.uniform(0.0, 1.0),
            dice.randrange(workers),
        )
        for _ in range(count)
    ]
