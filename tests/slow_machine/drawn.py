"""What is slow in one test."""

from __future__ import annotations

import random
from collections.abc import Callable
from threading import Lock

Delay = Callable[[str], float]
"""Returns the seconds by which to delay a call of a kind."""

DISPATCH = "dispatch"
"""Seconds from a put until its dispatch, and between checks for due services."""

SLEEPS = "sleeps"
"""Nothing happens while the test sleeps: see `World`."""

RANGES = {
    "sync": (0.1, 0.5),
    "event loop": (0.05, 1.0),
    "thread": (0.05, 0.5),
    "accept": (0.05, 0.5),
    "connect": (0.05, 0.5),
    "process": (0.05, 1.0),
    "stall": (3.2, 4.2),
}
"""Shortest and longest delay in seconds, of each kind. A stall is a pause of the event loop that
outlasts the timeouts that clients have by default; a test has one at most.
"""

_MOST = 1.5
"""Seconds of delay in one test, so that the tests end; each kind gets its share."""

_KINDS_AT_ONCE = 3
_SHARE_OF_STALLS = 0.1


class Drawn:
    """The delays of one test.

    Args:
        seed: the seed of the run.
        name: the test.
    """

    def __init__(self, seed: int, name: str) -> None:
        # Not what the tests draw from: their own draws remain the same.
        self._dice = dice = random.Random(f"{seed} {name}")
        self.is_frozen_by_sleeps = dice.random() < 0.5
        often = [kind for kind in (DISPATCH, *RANGES) if kind != "stall"]
        kinds = dice.sample(often, dice.randint(1, _KINDS_AT_ONCE))
        if dice.random() < _SHARE_OF_STALLS:
            kinds.append("stall")
        self.dispatch = dice.uniform(0.2, 1.0) if DISPATCH in kinds else None
        # Rare ones reach the calls after the first ones, before the time is spent.
        self._chances = {kind: 10 ** dice.uniform(-2.5, 0) for kind in RANGES if kind in kinds}
        self._left = dict.fromkeys(self._chances, _MOST / len(kinds))
        if "stall" in kinds:
            self._left["stall"] = RANGES["stall"][0]
        self._delays: dict[str, list[float]] = {kind: [] for kind in self._chances}
        self._lock = Lock()

    def delay(self, kind: str) -> float:
        """Return the seconds by which to delay one call, mostly 0."""
        chance = self._chances.get(kind)
        if chance is None or self._dice.random() >= chance:
            return 0.0
        with self._lock:
            if self._left[kind] <= 0:
                return 0.0
            seconds = self._dice.uniform(*RANGES[kind])
            self._left[kind] -= seconds
            self._delays[kind].append(seconds)
            return seconds

    def __str__(self) -> str:
        lines = [f"{SLEEPS}: nothing happens meanwhile"] if self.is_frozen_by_sleeps else []
        if self.dispatch is not None:
            lines.append(f"{DISPATCH}: {self.dispatch:.2f} s late")
        for kind, delays in self._delays.items():
            seconds = ", ".join(f"{delay:.2f}" for delay in delays) or "none"
            lines.append(f"{kind}: 1 call in {1 / self._chances[kind]:.0f}; seconds: {seconds}")
        return "\n".join(lines)
