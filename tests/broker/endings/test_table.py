"""Each cell of docs/what-ends.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import simulated
from tests.broker.endings.events import EVENTS, IN_PROCESS, OF_BROKERS, OF_TOPICS
from tests.broker.endings.pieces import Outcome
from tests.broker.endings.table import PAGE, PIECES, page
from tests.broker.endings.world import World


@pytest.mark.parametrize("event", EVENTS)
def test_what_becomes_of_each_piece(tmp_path: Path, event: str) -> None:
    async def test() -> None:
        async with World(tmp_path) as world:
            pieces = [piece for piece in PIECES if event in piece.outcomes]
            for piece in pieces:
                await piece.begin(world)
            if event in OF_TOPICS:
                for piece in pieces:
                    await OF_TOPICS[event](world, piece.topic, piece.group)
            if event in OF_BROKERS:
                await OF_BROKERS[event](world)
            if event in IN_PROCESS:
                await IN_PROCESS[event](world)
            failures: list[str] = []
            for piece in pieces:
                expected = piece.outcomes[event]
                seen = await piece.look(world, expected)
                outcome = seen.outcome(may_repeat=expected is Outcome.AGAIN)
                if outcome is not expected:
                    failures.append(f"{piece.name}: {outcome}, not {expected}: {seen.got}")
            assert not failures, "; ".join(failures)

    simulated.run(test())


def test_the_page_has_the_current_table() -> None:
    assert PAGE.read_text("utf-8") == page(), "python -m tests.broker.endings.table"
