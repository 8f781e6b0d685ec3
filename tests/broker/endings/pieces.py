"""Pieces of a broker's state, and what may become of them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from tests.broker.endings.world import World


class Outcome(StrEnum):
    """What becomes of the old messages that a piece is about. All new ones arrive in any case."""

    ENDS = "ends"
    KEPT = "kept"
    AGAIN = "kept, perhaps repeated"
    ANEW = "begins again"


class Piece(Protocol):
    """A piece of state.

    Attributes:
        name: the head of its column.
        topic, group: names that no other piece has.
        outcomes: by event.
    """

    name: str
    topic: str
    group: str
    outcomes: Mapping[str, Outcome]

    async def begin(self, world: World) -> None:
        """Create the topic and the group, and bring the state about."""
        ...

    async def check(self, world: World, outcome: Outcome) -> None:
        """Fail unless this has become of the state."""
        ...
