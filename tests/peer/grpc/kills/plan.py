"""What is killed when in a run: drawn from its seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

_MOST_MESSAGES = 20
_LONGEST_DOWN = 0.3


@dataclass(frozen=True)
class Kill:
    """One kill.

    Attributes:
        kind: what is killed.
        messages: how many more are delivered before, once each group of consumers has continued.
        down: seconds until it is started again.
    """

    kind: str
    messages: int
    down: float


def draw(seed: int, count: int, kinds: Sequence[str]) -> Sequence[Kill]:
    """Return the kills of a seed."""
    dice = random.Random(seed)
    return [
        Kill(dice.choice(kinds), dice.randrange(_MOST_MESSAGES), dice.uniform(0.0, _LONGEST_DOWN))
        for _ in range(count)
    ]
