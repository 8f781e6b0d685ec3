"""Both brokers go through the same events at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from tests.peer.endings.record import Cell, differences, load, of_table
from tests.peer.endings.run import Expected, Found, Say, run_side
from tests.peer.endings.sides import JAVA, MQLAKE

_TRIES = 3
"""How often RocketMQ's broker goes through an event, until it does once what it did before."""


class Compared(NamedTuple):
    """The end of a run: what RocketMQ's broker did, and a line for whatever was not expected."""

    java: Found
    unexpected: list[str]


async def compared(directory: Path, events: Collection[str], say: Say) -> Compared:
    """Run both brokers through events; mqlake's is to do what the table says, RocketMQ's as before.

    RocketMQ's broker sometimes loses or repeats new messages where it usually does not, so it may
    try again. Where it is known to do something else than mqlake's, its timing decides what.

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
    varying = differences().keys()
    odd = _odd(found[JAVA], expected[JAVA]) - varying
    for number in range(1, _TRIES):
        if not odd:
            break
        say(f"{JAVA}, again: {'; '.join(_lines(JAVA, odd, found[JAVA], expected[JAVA]))}")
        again = {cell.event for cell in odd}
        (place := directory / f"again-{number}").mkdir()
        second = await run_side(JAVA, place, again, expected[JAVA], say)
        for cell in odd - _odd(second, expected[JAVA]):
            found[JAVA][cell.event][cell.piece] = second[cell.event][cell.piece]
        odd = _odd(found[JAVA], expected[JAVA]) - varying
    ours = _odd(found[MQLAKE], expected[MQLAKE])
    unexpected = [
        *_lines(MQLAKE, ours, found[MQLAKE], expected[MQLAKE]),
        *_lines(JAVA, odd, found[JAVA], expected[JAVA]),
    ]
    return Compared(found[JAVA], unexpected)


def _odd(found: Found, expected: Expected) -> set[Cell]:
    """Return where an outcome is not the expected one."""
    return {
        Cell(event, piece)
        for event, outcomes in found.items()
        for piece, outcome in outcomes.items()
        if outcome != expected.get(event, {}).get(piece)
    }


def _lines(kind: str, odd: set[Cell], found: Found, expected: Expected) -> list[str]:
    return [
        f"{kind}: {piece}, {event}: {found[event][piece]}, not {expected.get(event, {}).get(piece)}"
        for event, piece in sorted(odd)
    ]
