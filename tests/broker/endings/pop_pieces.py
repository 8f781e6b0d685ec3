"""The state of popped messages.

Each piece has four old messages. The first is acknowledged, the others are not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from tests.broker.endings import events
from tests.broker.endings.pieces import Outcome, Piece
from tests.broker.endings.world import OUT, STAY, World
from tests.broker.pop.popping import Popped

OLD, NEW = ("old0", "old1", "old2", "old3"), ("new0", "new1", "new2", "new3", "new4")
KEPT_MESSAGES = frozenset(OLD[1:])

_OUTCOMES = {
    events.TOPIC: Outcome.ENDS,
    events.TOPIC_KILLED: Outcome.ENDS,
    events.GROUP: Outcome.ANEW,
    events.GROUP_ONLY: Outcome.KEPT,
    events.QUEUES_REDUCED: Outcome.KEPT,
    events.RESTART: Outcome.KEPT,
    events.KILL: Outcome.AGAIN,
    events.REVIVE_QUEUES: Outcome.KEPT,
    events.CLUSTER: Outcome.KEPT,
    events.ROLE: Outcome.AGAIN,
    events.OLDER_LOG: Outcome.KEPT,
}


@dataclass
class PopPiece:
    """Popped messages in some state.

    Attributes:
        bring_about: called with the messages that are not acknowledged.
        is_ordered: whether the messages are popped in order.
    """

    name: str
    topic: str
    bring_about: Callable[[World, PopPiece, list[Popped]], Awaitable[None]]
    is_ordered: bool = False

    @property
    def group(self) -> str:
        return f"{self.topic}Group"

    @property
    def outcomes(self) -> Mapping[str, Outcome]:
        return _OUTCOMES

    async def begin(self, world: World) -> None:
        await world.create(self.topic, self.group)
        await world.send(self.topic, *OLD)
        first, *others = await world.pop(self.topic, self.group, order=self.is_ordered)
        await world.acknowledge(self.topic, self.group, first)
        await self.bring_about(world, self, others)
        await world.settle()

    async def check(self, world: World, outcome: Outcome) -> None:
        await world.send(self.topic, *NEW)
        expected = {
            Outcome.ENDS: set[str](),
            Outcome.KEPT: set(KEPT_MESSAGES),
            Outcome.AGAIN: set(KEPT_MESSAGES),
            Outcome.ANEW: set(OLD),
        }[outcome]
        got = await world.received(self.topic, self.group, [*NEW, *expected], order=self.is_ordered)
        assert got >= set(NEW), f"{self.name}: of the new messages, only {sorted(got)} arrive"
        old = got - set(NEW)
        if outcome is Outcome.AGAIN:
            old -= set(OLD) - KEPT_MESSAGES
        assert old == expected, f"{self.name}: {sorted(old)} instead of {sorted(expected)}"


async def _nothing(world: World, piece: PopPiece, popped: list[Popped]) -> None:
    """Leave the messages as they are."""


async def _stored(world: World, piece: PopPiece, popped: list[Popped]) -> None:
    await world.later(STAY + 1)


async def _changed(world: World, piece: PopPiece, popped: list[Popped]) -> None:
    for each in popped:
        await world.change(piece.topic, piece.group, each, 2 * OUT)


async def _retried(world: World, piece: PopPiece, popped: list[Popped]) -> None:
    for each in popped:
        await world.change(piece.topic, piece.group, each, 1)
    await world.later(5)


POP_PIECES: tuple[Piece, ...] = (
    PopPiece("popped messages, in memory", "InMemory", _nothing),
    PopPiece("check points in the revive topic", "Stored", _stored),
    PopPiece("changed invisible times", "Changed", _changed),
    PopPiece("messages in the retry topic", "Retried", _retried),
    PopPiece("messages popped in order", "Ordered", _nothing, is_ordered=True),
)
