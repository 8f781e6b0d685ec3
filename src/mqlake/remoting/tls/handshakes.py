"""Handshakes take turns: each costs about as much time as hundreds of requests."""

from __future__ import annotations

import asyncio
from collections import deque
from time import perf_counter
from typing import Final, Protocol

_ROUND: Final = 0.002
"""Seconds of a round of the loop in which handshakes are continued."""


class Shaking(Protocol):
    """A connection whose handshake is not complete."""

    def step(self) -> None:
        """Continue the handshake with the bytes that have arrived."""
        ...


class Handshakes:
    """Continues handshakes, a few in each round of the loop.

    However many clients connect at once, the requests of others are served between them.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Shaking] = deque()

    def add(self, shaking: Shaking) -> None:
        """Continue a handshake when its turn comes."""
        if not self._waiting:
            self._loop.call_soon(self._next_round)
        self._waiting.append(shaking)

    def _next_round(self) -> None:
        until = perf_counter() + _ROUND
        while self._waiting:
            # It is removed afterwards: what it adds meanwhile must not start a second round.
            self._waiting[0].step()
            self._waiting.popleft()
            if perf_counter() >= until:
                break
        if self._waiting:
            self._loop.call_soon(self._next_round)
