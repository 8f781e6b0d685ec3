"""Pieces of a broker's state, and what may become of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NamedTuple, Protocol

from tests.broker.endings.scene import Pace, Scene


class Outcome(StrEnum):
    """What becomes of the old messages that a piece is about.

    The last two are faults, of which mqlake has none.
    """

    ENDS = "ends"
    KEPT = "kept"
    AGAIN = "kept, perhaps repeated"
    ANEW = "begins again"
    PART = "a part is kept"
    TWICE = "new messages come twice"
    LOST = "new messages are lost"


class Messages(NamedTuple):
    """The messages of a piece: those that were consumed, those that wait, and new ones."""

    consumed: frozenset[str]
    waiting: frozenset[str]
    new: frozenset[str]

    def expected(self, outcome: Outcome) -> frozenset[str]:
        """Return what must arrive if that is the outcome."""
        match outcome:
            case Outcome.KEPT | Outcome.AGAIN:
                return self.new | self.waiting
            case Outcome.ANEW:
                return self.new | self.waiting | self.consumed
            case Outcome.LOST:
                return frozenset()
            case _:
                return self.new


class Seen(NamedTuple):
    """What a consumer gets after an event, and how often."""

    messages: Messages
    got: Counter[str]

    def outcome(self, *, may_repeat: bool) -> Outcome:
        """Return what that is; with `may_repeat`, consumed messages may come again, or not.

        Where no message was consumed before the event, `may_repeat` has no meaning.
        """
        messages, got = self.messages, self.got
        old = got.keys() & (messages.consumed | messages.waiting)
        if not got.keys() >= messages.new:
            return Outcome.LOST
        if any(got[body] > 1 for body in messages.new):
            return Outcome.TWICE
        if not old:
            return Outcome.ENDS
        if not old >= messages.waiting:
            return Outcome.PART
        if may_repeat and messages.consumed:
            return Outcome.AGAIN
        if old == messages.waiting:
            return Outcome.KEPT
        return Outcome.ANEW if old >= messages.consumed else Outcome.PART


class Piece(Protocol):
    """A piece of state.

    Attributes:
        name: the head of its column.
        topic, group: names that no other piece has.
        outcomes: by event.
        is_slow: whether it takes time to bring it about.
        lasts: for how many seconds it exists, from its beginning.
    """

    name: str
    topic: str
    is_slow: bool
    lasts: Callable[[Pace], float]

    @property
    def group(self) -> str: ...

    @property
    def outcomes(self) -> Mapping[str, Outcome]: ...

    async def begin(self, scene: Scene) -> None:
        """Create the topic and the group, and bring the state about."""
        ...

    async def look(self, scene: Scene, outcome: Outcome) -> Seen:
        """Send new messages, and consume; what belongs to the outcome may take its time."""
        ...

    def tells(self) -> bool:
        """Return whether what has begun shows what becomes of it, if queues are taken away."""
        ...

    def named(self, topic: str) -> Piece:
        """Return a piece of the same kind in another topic."""
        ...
