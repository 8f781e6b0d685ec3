"""What happens in a run of a group: drawn from its seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

NETWORK = ("cut", "cut in frames", "half-open", "block", "slow", "refuse")
SLAVE = ("kill a slave", "kill a slave in a write", "stop a slave", "give a slave an empty store")
MASTER = ("kill the master", "kill the master in a write", "stop the master")
POWER = (
    "cut a slave's power",
    "cut a slave's power in a write",
    "cut the master's power",
    "cut the master's power in a write",
)
BY_HAND = ("fail over", "fail over after a power loss", "switch over", "forge reports")
LED = (
    "keep the controller from a broker",
    "elect another master",
    "elect who has come back",
    "cut the power of all",
)


@dataclass(frozen=True)
class Round:
    """One fault, and what is put meanwhile.

    Attributes:
        kind: one of the kinds above.
        puts: how many times messages are put before, while and after it happens.
        seconds: how long it lasts; of no meaning for some kinds.
    """

    kind: str
    puts: tuple[int, int, int]
    seconds: float


@dataclass(frozen=True)
class Plan:
    """A run.

    Attributes:
        is_led: a controller decides who is the master; else an operator does.
        is_sync: of each broker, whether it acknowledges only what is on its disk.
        is_acknowledged: messages are acknowledged once slaves have them.
        settings: of all brokers.
        knows_master: slaves learn where their master's log begins and ends before they follow it.
        look: seconds between looks of a store.
        longest: bytes of the longest body.
    """

    seed: int
    is_led: bool
    is_sync: Sequence[bool]
    is_acknowledged: bool
    settings: dict[str, object]
    knows_master: bool
    look: float
    longest: int
    rounds: Sequence[Round]


def draw(seed: int) -> Plan:
    """Return the plan of a seed."""
    dice = random.Random(f"{seed}/group")
    is_led = dice.random() < 0.5
    brokers = dice.choice((2, 2, 3))
    is_sync = dice.choice((True, True, False))
    kinds = (*NETWORK, *SLAVE, *MASTER, *POWER, *(LED if is_led else BY_HAND * 2))
    settings: dict[str, object] = {"haTransferBatchSize": dice.choice((200, 1000, 32 << 10))}
    if dice.random() < 0.3:
        settings["maxCommitLogBytes"] = 12 << 10
    if not is_led and brokers == 3 and dice.random() < 0.3:
        settings["inSyncReplicas"] = 3
    return Plan(
        seed=seed,
        is_led=is_led,
        is_sync=[is_sync if dice.random() < 0.8 else not is_sync for _ in range(brokers)],
        is_acknowledged=is_led or dice.random() < 0.85,
        settings=settings,
        knows_master=dice.random() < 0.6,
        look=dice.choice((0.1, 0.5, 1.0)),
        longest=dice.choice((20, 300, 1000)),
        rounds=[
            Round(
                dice.choice(kinds),
                (dice.randrange(4), dice.randrange(4), dice.randrange(3)),
                dice.choice((0.05, 0.5, 5.0)) * dice.random(),
            )
            for _ in range(dice.randrange(2, 7))
        ],
    )
