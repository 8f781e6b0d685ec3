"""What happens in a run: drawn from its seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

NETWORK = ("cut", "cut in frames", "half-open", "block", "slow", "refuse")
PROCESS = (
    "kill a broker",
    "kill a broker in a write",
    "stop a broker",
    "kill the name server",
    "stop the name server",
)
POWER = ("cut a broker's power", "cut a broker's power in a write")
GROUP = ("a consumer joins", "a consumer leaves", "a consumer dies", "a consumer loses power")


class Reading(Enum):
    """How the consumers of a run read."""

    CONCURRENT = "concurrent"
    IN_ORDER = "in order"
    POP = "pop"


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        kind: one of NETWORK, PROCESS, POWER or GROUP.
        wait: seconds after the one before it.
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
        brokers: how many there are.
        is_sync: whether brokers acknowledge what is on the disk only. Power is cut only then.
        members: consumers at the start.
        concurrency: messages that a consumer handles at once.
        sends: what the producer sends, one after the other: see `Senders`.
        pause: seconds between two of them, at most.
        faults: what happens meanwhile.
        intervals: seconds between looks of the store, route requests, heartbeats.
    """

    seed: int
    brokers: int
    is_sync: bool
    reading: Reading
    members: int
    concurrency: int
    sends: Sequence[str]
    pause: float
    faults: Sequence[Fault]
    intervals: dict[str, float]


_SENDS = ("single", "single", "batch", "many", "sharded", "sharded", "transaction")


def draw(seed: int) -> Plan:
    """Return the plan of a seed."""
    dice = random.Random(f"{seed}/plan")
    is_sync = dice.random() < 0.6
    kinds = (*NETWORK, *PROCESS, *GROUP, *(POWER if is_sync else ()))
    return Plan(
        seed=seed,
        brokers=1 if dice.random() < 0.7 else 2,
        is_sync=is_sync,
        reading=dice.choice(tuple(Reading)),
        members=dice.choice((1, 1, 2)),
        concurrency=dice.choice((1, 4)),
        sends=dice.choices(_SENDS, k=dice.randrange(3, 8)),
        pause=dice.choice((0.002, 0.05, 0.3)),
        faults=[
            Fault(dice.choice(kinds), dice.choice((0.01, 0.1, 0.5)) * dice.random(), dice.random())
            for _ in range(dice.randrange(5))
        ],
        intervals={
            "look": dice.choice((0.05, 0.2)),
            "routes": dice.choice((1.0, 5.0)),
            "heartbeats": dice.choice((1.0, 3.0)),
        },
    )
