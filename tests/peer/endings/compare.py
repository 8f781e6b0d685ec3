"""Both brokers go through the same events at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from tests.peer.endings.record import Cell, differences, load, of_table
from tests.peer.endings.run import Expected, Found, Say, run_side
from tests.peer.endings.sides import JAVA, MQLAKE


class Compared(NamedTuple):
    """The end of a run: what RocketMQ's broker did, and a line for whatever was not expected."""

    java: Found
    unexpected: list[str]


async def compared(directory: Path, events: Collection[str], say: Say) -> Compared:
    """Run both brokers through events; mqlake's is to do what the table says, RocketMQ's as before.

    Where RocketMQ's broker is known to lose or to repeat messages, its timing decides which of them
    it does, and whether: only where both do the same, it must do it again.

    Raises:
        JavaMissingError, TimeoutError: as `run_side`.
    """
    expected: dict[str, Expected] = {MQLAKE: of_table(), JAVA: load()}
    async with asyncio.TaskGroup() as group:
        tasks = {
            kind: group.create_task(run_side(kind, directory, events, outcomes, say))
            for kind, outcomes in expected.items()
        }
    found = {kind: task.result() for kind, task in tasks.items()}
    varying = differences()
    unexpected = [
        f"{kind}: {piece}, {event}: {outcome}, not {known.get(event, {}).get(piece)}"
        for kind, known in expected.items()
        for event, outcomes in found[kind].items()
        for piece, outcome in outcomes.items()
        if outcome != known.get(event, {}).get(piece)
        and (kind == MQLAKE or Cell(event, piece) not in varying)
    ]
    return Compared(found[JAVA], unexpected)
