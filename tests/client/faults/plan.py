"""What happens in a run: drawn from its seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

NETWORK = ("cut", "cut in frames", "stall", "slow", "half-open", "swallow", "refuse")
SERVERS = ("kill the broker", "stop the broker", "stop the name server")
GROUP = ("a consumer joins", "a consumer leaves")


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        kind: one of NETWORK, SERVERS or GROUP.
        wait: seconds after the one before it on the same track.
        seconds: how long it lasts; of no meaning for some kinds.
    """

    kind: str
    wait: float
    seconds: float


@dataclass(frozen=True)
class Plan:
    """A run.

    Attributes:
        seed: it is drawn from.
        in_order: whether the consumers are in order.
        members: consumers at the start.
        concurrency: messages that a consumer handles at once.
        tracks: faults that happen one after the other; the tracks run side by side.
        cut_off: how the consumers are cut off while their processor time is measured.
    """

    seed: int
    in_order: bool
    members: int
    concurrency: int
    tracks: Sequence[Sequence[Fault]]
    cut_off: str


def draw(seed: int) -> Plan:
    """Return the plan of a seed."""
    dice = random.Random(seed)
    return Plan(
        seed=seed,
        in_order=bool(seed % 2),
        members=dice.choice((2, 3)),
        concurrency=dice.choice((1, 4, 20)),
        tracks=(
            _track(dice, NETWORK, dice.randrange(2, 8), 0.6),
            _track(dice, SERVERS, dice.randrange(1, 3), 1.0),
            _track(dice, GROUP, dice.randrange(1, 5), 1.0),
        ),
        cut_off=dice.choice(("refuse", "swallow")),
    )


def _track(
    dice: random.Random, kinds: Sequence[str], count: int, longest_wait: float
) -> Sequence[Fault]:
    return [
        Fault(dice.choice(kinds), dice.uniform(0.1, longest_wait), dice.uniform(0.1, 1.0))
        for _ in range(count)
    ]
