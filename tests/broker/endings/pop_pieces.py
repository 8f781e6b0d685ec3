"""The state of popped messages.

Each piece has four old messages. The first is acknowledged, the others are not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from math import inf

from tests.broker.endings import events
from tests.broker.endings.pieces import Messages, Outcome, Piece, Seen
from tests.broker.endings.scene import Pace, Scene
from tests.broker.pop.popping import Popped

OLD, NEW = ("old0", "old1", "old2", "old3"), ("new0", "new1", "new2", "new3", "new4")
_MESSAGES = Messages(frozenset(OLD[:1]), frozenset(OLD[1:]), frozenset(NEW))

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
        revive_queue: the queue of the revive topic that their check point has.
    """

    name: str
    topic: str
    bring_about: Callable[[Scene, PopPiece, list[Popped]], Awaitable[None]]
    lasts: Callable[[Pace], float]
    is_ordered: bool = False
    is_slow: bool = False
    revive_queue: int = 0

    @property
    def group(self) -> str:
        return f"{self.topic}Group"

    @property
    def outcomes(self) -> Mapping[str, Outcome]:
        return _OUTCOMES

    def tells(self) -> bool:
        return self.revive_queue > 0  # The first queue always stays.

    def named(self, topic: str) -> Piece:
        return replace(self, topic=topic)

    async def begin(self, scene: Scene) -> None:
        await scene.create(self.topic, self.group)
        await scene.send(self.topic, *OLD)
        await scene.shown(self.topic, len(OLD))
        popped = await scene.pop(self.topic, self.group, order=self.is_ordered)
        assert [each.body for each in popped] == list(OLD), "all are popped at once"
        first, *others = popped
        self.revive_queue = int(first.receipt.split(" ")[3])
        await scene.acknowledge(self.topic, self.group, first)
        await self.bring_about(scene, self, others)
        await scene.settle()

    async def look(self, scene: Scene, outcome: Outcome) -> Seen:
        await scene.send(self.topic, *NEW)
        got = await scene.received(
            self.topic, self.group, _MESSAGES.expected(outcome), order=self.is_ordered
        )
        return Seen(_MESSAGES, got)


async def _nothing(scene: Scene, piece: PopPiece, popped: list[Popped]) -> None:
    """Leave the messages as they are."""


async def _stored(scene: Scene, piece: PopPiece, popped: list[Popped]) -> None:
    await scene.later(scene.pace.stay + 1)


async def _changed(scene: Scene, piece: PopPiece, popped: list[Popped]) -> None:
    for each in popped:
        await scene.change(piece.topic, piece.group, each, 2 * scene.pace.out * 1000)


async def _retried(scene: Scene, piece: PopPiece, popped: list[Popped]) -> None:
    for each in popped:
        await scene.change(piece.topic, piece.group, each, 1)
    await scene.later(min(scene.pace.step, 5))
    await scene.shown(f"%RETRY%{piece.group}_{piece.topic}", len(popped), queues=1)


POP_PIECES: tuple[Piece, ...] = (
    PopPiece("popped messages, in memory", "InMemory", _nothing, lambda pace: pace.stay),
    PopPiece(
        "check points in the revive topic", "Stored", _stored, lambda pace: pace.out, is_slow=True
    ),
    PopPiece("changed invisible times", "Changed", _changed, lambda pace: pace.stay),
    PopPiece("messages in the retry topic", "Retried", _retried, lambda _: inf, is_slow=True),
    PopPiece(
        "messages popped in order", "Ordered", _nothing, lambda pace: pace.out, is_ordered=True
    ),
)
