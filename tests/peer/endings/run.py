"""Go through the events of docs/what-ends.md with a broker of mqlake or of RocketMQ."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from mqlake.remoting.client import RemotingClient
from tests.broker.endings.events import KILL, OF_BROKERS, OF_TOPICS, REVIVE_QUEUES, TOPIC_KILLED
from tests.broker.endings.pieces import Outcome, Piece
from tests.broker.endings.scene import Pace
from tests.broker.endings.table import PIECES
from tests.broker.running import PATIENCE
from tests.peer.endings.scenes import Real
from tests.peer.endings.sides import SIDES

QUICK = Pace(out=12, stay=5, level=3, delay=10, step=1, least=32, most=150)
"""For events without a start: all of them are over while popped messages are invisible."""

SLOW = Pace(out=40, stay=8, level=4, delay=30, step=1, least=88, most=180)
"""For events with a start, which takes some seconds."""

STARTS = tuple(OF_BROKERS)
ALIVE = tuple(event for event in OF_TOPICS if event not in OF_BROKERS)
"""Events with a start, and those that a broker lives through."""

_KILLS = (TOPIC_KILLED, KILL)
_TRIES = 10
_FIRST_FLUSH = 12
"""Seconds after its start until RocketMQ's broker has written its tables, which it does once."""

Found = dict[str, dict[str, Outcome]]
"""Outcomes by the name of the event and of the piece."""

Expected = Mapping[str, Mapping[str, Outcome]]
Say = Callable[[str], object]


async def run_side(
    kind: str, directory: Path, events: Collection[str], expected: Expected, say: Say = print
) -> Found:
    """Return what becomes of each piece in each event with a broker of one side.

    `expected` are outcomes that are waited for; where there are none, those of the table.

    Raises:
        JavaMissingError: RocketMQ's broker cannot be built.
        TimeoutError: this machine is too slow to bring something about before it is over.
    """
    alive = [event for event in ALIVE if event in events]
    starts = [event for event in STARTS if event in events]
    side = SIDES[kind](directory / kind.partition(" ")[0])
    found: Found = {}
    async with AsyncExitStack() as stack:
        client = RemotingClient(connect_timeout=PATIENCE)
        stack.push_async_callback(asyncio.to_thread, side.kill)
        stack.push_async_callback(client.close)
        scene = Real(side, client, QUICK if alive else SLOW)
        await scene.start()
        # Each event has messages of its own: nothing of one is another's.
        results = await asyncio.gather(*(_alive(scene, event, expected) for event in alive))
        found |= dict(zip(alive, results, strict=True))
        if alive and starts:
            await scene.slow_down(SLOW)
        if starts:
            await scene.later(_FIRST_FLUSH)
        for event in starts:
            found[event] = await _with_start(scene, event, expected)
            say(f"{kind}: {event}")
    return found


def _pieces(event: str, attempt: int) -> list[Piece]:
    number = (*ALIVE, *STARTS).index(event)
    return [
        piece.named(f"{piece.topic}{number}x{attempt}")
        for piece in PIECES
        if event in piece.outcomes
    ]


async def _alive(scene: Real, event: str, expected: Expected) -> dict[str, Outcome]:
    async def of(pieces: Sequence[Piece]) -> Outcome:
        for piece in pieces:
            began = time.monotonic()
            await piece.begin(scene)
            await OF_TOPICS[event](scene, piece.topic, piece.group)
            if time.monotonic() - began < piece.lasts(scene.pace):
                return await _look(scene, event, piece, expected)
        raise TimeoutError(f"{pieces[0].name}, {event}")

    pieces = list(zip(*(_pieces(event, attempt) for attempt in range(_TRIES)), strict=True))
    outcomes = await asyncio.gather(*map(of, pieces))
    return {each[0].name: outcome for each, outcome in zip(pieces, outcomes, strict=True)}


async def _with_start(scene: Real, event: str, expected: Expected) -> dict[str, Outcome]:
    settings = scene.settings
    for attempt in range(_TRIES):
        pieces = _pieces(event, attempt)
        began = await _bring_about(scene, event, pieces)
        if began is None:
            continue
        await OF_BROKERS[event](scene)
        if scene.ended - min(began.values()) < scene.pace.out:
            break
        scene.settings = settings
        await scene.restart()
    else:
        raise TimeoutError(event)
    outcomes = await asyncio.gather(*(_look(scene, event, piece, expected) for piece in pieces))
    return {piece.name: outcome for piece, outcome in zip(pieces, outcomes, strict=True)}


async def _bring_about(scene: Real, event: str, pieces: Sequence[Piece]) -> dict[str, float] | None:
    """Bring everything about, up to the end of the broker; return when each piece began.

    None if some of it is over by now. What is in memory, or waits, comes last.
    """
    began: dict[str, float] = {}

    async def begin(piece: Piece) -> None:
        began[piece.name] = time.monotonic()
        await piece.begin(scene)

    await asyncio.gather(*(begin(piece) for piece in pieces if piece.is_slow))
    await asyncio.gather(*(begin(piece) for piece in pieces if not piece.is_slow))
    if happen := OF_TOPICS.get(event):
        await asyncio.gather(*(happen(scene, piece.topic, piece.group) for piece in pieces))
    if event == REVIVE_QUEUES and not all(piece.tells() for piece in pieces):
        return None
    now = time.monotonic()
    is_whole = all(now - began[piece.name] < piece.lasts(scene.pace) for piece in pieces)
    return began if is_whole else None


async def _look(scene: Real, event: str, piece: Piece, expected: Expected) -> Outcome:
    awaited = expected.get(event, {}).get(piece.name, piece.outcomes[event])
    seen = await piece.look(scene, awaited)
    return seen.outcome(may_repeat=event in _KILLS)
